// The settings of one worker: plain values, complete and checked. load.hpp makes them from the
// file. docs/configuration.md describes each one. The initial values here are the defaults.
//
// Thread safety: values; a thread that shares one does not change it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "key/key_spec.hpp"
#include "observe/http_post.hpp"
#include "observe/log.hpp"

namespace hapax::config {

// The end of the log at which a partition starts if neither Kafka nor PostgreSQL knows an offset of
// it.
enum class Initial { earliest, latest };

// What happens if Kafka has deleted the next offset, so messages were lost. Either the partition
// halts, or it goes on at the earliest offset and counts the gap.
enum class OutOfRange { halt, earliest };

struct Kafka {
  // For librdkafka, by its own names. Nothing in here breaks hapax's promise (kafka_rules.hpp).
  // Whether librdkafka knows a name and accepts its value shows when the consumer is made. Holds
  // secrets: show a value only through redacted().
  std::map<std::string, std::string> properties;
  // For sasl.username and sasl.password: the file from which the value was read, if it came from
  // one. If Kafka refuses us, hapax reads the file again, so a password can change without a
  // restart.
  std::map<std::string, std::string> files;
  Initial initial = Initial::earliest;
  OutOfRange out_of_range = OutOfRange::halt;
  bool wait_for_topics = true;  // if a topic is missing at start, wait for it; else end

  bool operator==(const Kafka&) const = default;
};

struct Postgres {
  std::string url;  // libpq URI or conninfo; holds secrets: show it only through redact_url()
  // The file from which url was read. It is read again for each connection. "" if the url comes
  // from the configuration or a variable.
  std::string url_file;
  std::chrono::milliseconds connect_timeout{5'000};  // for each host; libpq counts whole seconds
  std::chrono::milliseconds lock_timeout{3'000};
  std::chrono::milliseconds statement_timeout{30'000};
  std::chrono::milliseconds idle_in_transaction_timeout{60'000};
  bool wait_at_start = true;  // if PostgreSQL is away at start, wait for it; else end

  bool operator==(const Postgres&) const = default;
};

// Which messages wait for each other: all of a partition, those with one record key, none.
enum class Ordering { partition, key, none };

// What the COMMIT of a handler's effects waits for: for what synchronous_commit asks, or for
// nothing. In the second case the next checkpoint makes them durable.
enum class Durability { synchronous, checkpoint };

// Bounds for messages that are received and not settled. A partition is paused beyond either.
struct Queue {
  std::size_t messages = 10'000;
  std::size_t bytes = std::size_t{64} << 20;

  bool operator==(const Queue&) const = default;
};

struct Worker {
  std::string name;  // shown to operators; never empty: host:pid if the file has none
  std::size_t lanes = 8;
  Ordering ordering = Ordering::key;
  Queue queue;
  Durability durability = Durability::synchronous;
  std::chrono::milliseconds checkpoint_interval{1'000};
  std::chrono::milliseconds revoke_timeout{5'000};
  std::chrono::milliseconds shutdown_timeout{8'000};
  std::chrono::milliseconds handler_timeout{300'000};

  bool operator==(const Worker&) const = default;
};

// The wait doubles with each attempt from `first` up to `max`, with jitter.
struct Retry {
  std::uint32_t max_attempts = 5;
  std::uint32_t max_crashes = 3;
  std::chrono::milliseconds first{200};
  std::chrono::milliseconds max{30'000};
  std::optional<std::chrono::milliseconds>
      max_elapsed;  // since the first failure; nothing: no limit

  bool operator==(const Retry&) const = default;
};

// What the other side of an outside handler does with a call that comes a second time.
enum class Repeat {
  idempotent,  // it keeps the key that we hand on for Outside::remembers
  queryable,   // it can be asked what became of a call
  never,       // neither
};

// A route whose handler calls to the outside.
struct Outside {
  Repeat repeat = Repeat::never;
  std::chrono::milliseconds remembers{0};  // idempotent only
  std::chrono::milliseconds lease{30'000};
  std::chrono::milliseconds max_duration{600'000};
  std::size_t concurrency = 16;  // calls at once, in each worker

  bool operator==(const Outside&) const = default;
};

// The registry that holds the schemas of producers.
struct Registry {
  std::string url;  // "": none
  std::string user;
  std::string password;  // holds a secret
  std::string ca_file;   // PEM; "": the system's
  // How long a message waits for a schema that the registry does not know.
  std::chrono::milliseconds unknown_timeout{60'000};

  bool operator==(const Registry&) const = default;
};

// What the payloads of a route are.
struct Payload {
  enum class Format {
    plain,     // the bytes are what a key, a schema and the handler read
    json,      // Confluent's framing, then JSON
    avro,      // Confluent's framing, then Avro's binary encoding
    protobuf,  // Confluent's framing, then a Protobuf message
  };
  Format format = Format::plain;
  Registry registry;
  std::string schema;  // path of a JSON Schema; "": any JSON

  bool operator==(const Payload&) const = default;
};

// One topic and what is done with its messages.
struct Route {
  std::string topic;
  std::string handler;
  std::string plugin;             // path of the shared library; "" if the handler is linked in
  key::KeySpec key;               // scope is never empty: the handler's name if the file has none
  std::string dead_letter_topic;  // "": dead letters stay in PostgreSQL only
  Retry retry;
  std::chrono::milliseconds retention = std::chrono::hours(168);
  nlohmann::json options = nlohmann::json::object();  // for the handler's on_start; holds secrets
  std::size_t max_result_bytes = std::size_t{64} << 10;
  std::size_t batch = 1;        // messages a transaction, at most
  std::uint32_t breaker = 100;  // dead letters in a row for one cause that halt the route; 0: never
  // What the handler does with its tables, such as {"payments": {"INSERT"}}; checked, and tested.
  std::map<std::string, std::vector<std::string>> tables;
  std::optional<Outside> outside;  // nothing: its handler takes effect in PostgreSQL only
  Payload payload;
};

// The address that serves /metrics, /livez and /readyz. Port 0: any free one.
struct Listen {
  std::string host;  // without the brackets of an IPv6 address
  std::uint16_t port = 0;

  bool operator==(const Listen&) const = default;
};

struct Admin {
  std::optional<Listen> listen = Listen{"127.0.0.1", 9464};  // nothing: off

  bool operator==(const Admin&) const = default;
};

// What handlers may publish with Context::publish.
struct Publish {
  std::vector<std::string> topics;  // none twice
  bool transactions = false;        // consumers with read_committed see each record once

  bool operator==(const Publish&) const = default;
};

// The parent of a single message's span: none, with a link to its producer's span, or that span.
enum class SpanParent { link, producer };

struct Traces {
  std::optional<observe::HttpTarget> endpoint;  // nothing: off
  SpanParent parent = SpanParent::link;
  double ratio = 1;  // of messages whose producer has not decided; 0 to 1

  bool operator==(const Traces&) const = default;
};

struct Log {
  observe::log::Level level = observe::log::Level::info;
  observe::log::Format format = observe::log::Format::text;
  bool error_text = false;  // errors of messages, which may quote them

  bool operator==(const Log&) const = default;
};

struct Console {
  // JSON pointers to values that the console hides; `*` in one is any member or element. Empty: it
  // hides none.
  std::vector<std::string> mask;

  bool operator==(const Console&) const = default;
};

struct Config {
  Kafka kafka;
  Postgres postgres;
  Worker worker;
  std::vector<Route> routes;  // at least one; no topic twice
  Publish publish;
  Admin admin;
  Traces traces;
  Log log;
  Console console;
};

}  // namespace hapax::config
