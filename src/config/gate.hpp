// What `hapax gate` is told: plain values, complete and checked. docs/gate.md describes each
// one. The initial values here are the defaults.
//
// Thread safety: values; a thread that shares one does not change it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.hpp"
#include "config/load.hpp"
#include "config/network.hpp"

namespace hapax::config {

// What a client may ask for at most.
struct GateLimits {
  std::size_t connections = 10'000;
  std::size_t requests = 1'000;  // of one connection, after which it is closed
  std::size_t headers = 100;
  std::size_t header_bytes = std::size_t{16} << 10;
  std::size_t body_bytes = std::size_t{1} << 20;
  std::size_t bodies_bytes = std::size_t{256} << 20;  // of all requests together
  std::chrono::milliseconds header_time{10'000};
  std::chrono::milliseconds body_time{30'000};
  std::chrono::milliseconds idle_time{60'000};

  bool operator==(const GateLimits&) const = default;
};

// A bearer token as it is kept: the token cannot be made from it.
struct GateToken {
  std::string tenant;
  std::string digest;  // 32 bytes, SHA-256 of the token
};

// TLS in the gate itself. Paths of files in PEM, which may change while it runs.
struct GateTls {
  std::string certificate;  // "": plain HTTP
  std::string key;
  std::string client_ca;  // whose certificates tell who calls; "": nobody's

  bool is_on() const { return !certificate.empty(); }
};

// Who may call. At least one of `tokens`, `proxies` and GateTls::client_ca is there.
struct GateCallers {
  std::vector<GateToken> tokens;
  std::string tokens_file;  // that they came from, and may change in; "": from none
  std::vector<Network> proxies;
  std::string header;  // in which a proxy names the tenant; lower case
};

// A route whose requests become Kafka records: a worker takes effect.
struct GateAccept {
  std::string topic;
  std::string scope;  // in which the worker's route for that topic keeps its keys
  // The record's key, by which records keep their order: a JSON pointer into the body, or a header
  // of the record. Both "": each record has a key of its own.
  std::string key_pointer, key_header;

  bool operator==(const GateAccept&) const = default;
};

// The handlers of routes that have none of a user's.
inline constexpr const char* kAcceptHandler = "hapax:accept";
inline constexpr const char* kOperationsHandler = "hapax:operations";
inline constexpr const char* kOperationsPath = "/operations/{operation}";

// How many requests of a route may share a transaction, unless it says otherwise.
inline constexpr std::size_t kGateBatch = 16;

// What stands beside the common members of a route (GateConfig::base.routes, in the same order).
struct GateRoute {
  std::string path;                          // /accounts/{account}/payments
  std::vector<std::string> methods{"POST"};  // GET, POST, PUT, PATCH, DELETE
  std::vector<std::string> tenants;          // who may call it; empty: all
  std::optional<GateAccept> accept = {};     // nothing: a handler runs
};

struct Gate {
  Listen listen{"127.0.0.1", 8080};
  std::string name = "gate";   // in the keys' rows: what the group is of a worker's
  std::string scope = "gate";  // of all its keys
  std::chrono::milliseconds retention = std::chrono::hours(168);
  std::size_t lanes = 8;
  std::size_t queue = 1'000;  // requests that wait for a lane
  std::chrono::milliseconds wait{3'000};
  std::chrono::milliseconds shutdown_timeout{8'000};
  std::chrono::milliseconds handler_timeout{60'000};  // of its own time, without PostgreSQL's
  std::string rules;  // the page that describes all this to clients; "": none
  GateLimits limits;
  GateTls tls;
  GateCallers callers;
  std::chrono::milliseconds looks_at_files{5'000};  // of tokens and TLS; tests shorten it
  // How long the handlers of a batch may take, statements included; tests change it.
  std::chrono::milliseconds batch_time{250};
  std::string operations_key;     // 64 bytes; a secret. "": no route accepts
  std::vector<GateRoute> routes;  // if one accepts, the last is that of the operations
};

struct GateConfig {
  Gate gate;
  // postgres, admin, log, kafka and publish; routes as a worker's, with the path as topic.
  Config base;
};

struct LoadedGate {
  std::optional<GateConfig> config;  // there exactly if `problems` is empty
  std::vector<Problem> problems;
  std::vector<std::string> warnings;
};

// The lines of a token file, or what is wrong with it, in words that show none of it. Pure.
std::variant<std::vector<GateToken>, std::string> tokens_of(std::string_view text);

// As load_text() and load_file().
LoadedGate load_gate_text(std::string_view text, const Environment& environment);
LoadedGate load_gate_file(const std::string& path, const Environment& environment);

// Whether the file is the configuration of a gate: it can be read, and has a section "gate".
bool is_gate_file(const std::string& path);

}  // namespace hapax::config
