// The settings of `hapax gate`: plain values, complete and checked. docs/gate.md describes each
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

// The bounds for clients.
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
  std::string client_ca;  // the authority of client certificates that identify callers; "": none

  bool is_on() const { return !certificate.empty(); }
};

// Who may call. At least one of `tokens`, `proxies` and GateTls::client_ca is there.
struct GateCallers {
  std::vector<GateToken> tokens;
  std::string tokens_file;  // the file of the tokens, which may change; "": none
  std::vector<Network> proxies;
  std::string header;  // the header in which a proxy names the tenant; lower case
};

// For a route whose requests become Kafka records, which a worker processes.
struct GateAccept {
  std::string topic;
  std::string scope;  // the scope of the worker's route for that topic
  // The record's key is at this JSON pointer into the body, or in this header of the record.
  // Records with one key keep their order. Both "": each record has a key of its own.
  std::string key_pointer, key_header;

  bool operator==(const GateAccept&) const = default;
};

// The names of hapax's own handlers.
inline constexpr const char* kAcceptHandler = "hapax:accept";
inline constexpr const char* kOperationsHandler = "hapax:operations";
// The name of an accepted request's publish, followed by a blank and the request's fingerprint.
inline constexpr const char* kAcceptedName = "request";
inline constexpr const char* kOperationsPath = "/operations/{operation}";

// How many requests of a route may share a transaction, if the route does not set it.
inline constexpr std::size_t kGateBatch = 16;

// What a gate's route has beside a worker's members. Those are in GateConfig::base.routes, in the
// same order.
struct GateRoute {
  std::string path;                          // /accounts/{account}/payments
  std::vector<std::string> methods{"POST"};  // GET, POST, PUT, PATCH, DELETE
  std::vector<std::string> tenants;          // who may call it; empty: all
  std::optional<GateAccept> accept = {};     // nothing: a handler runs
};

struct Gate {
  Listen listen{"127.0.0.1", 8080};
  std::string name = "gate";   // in the rows of keys, in place of a worker's group
  std::string scope = "gate";  // the scope of all its keys
  std::chrono::milliseconds retention = std::chrono::hours(168);
  std::size_t lanes = 8;
  std::size_t queue = 1'000;  // requests that wait for a lane
  std::chrono::milliseconds wait{3'000};
  std::chrono::milliseconds shutdown_timeout{8'000};
  std::chrono::milliseconds handler_timeout{60'000};  // without the time that PostgreSQL takes
  std::string rules;  // the page that describes all this to clients; "": none
  GateLimits limits;
  GateTls tls;
  GateCallers callers;
  std::chrono::milliseconds looks_at_files{5'000};  // of tokens and TLS; tests shorten it
  // How long the handlers of a batch may take, statements included; tests change it.
  std::chrono::milliseconds batch_time{250};
  std::string operations_key;     // 64 bytes; a secret. "": no route accepts
  std::vector<GateRoute> routes;  // if a route accepts, the last one is /operations
};

struct GateConfig {
  Gate gate;
  // postgres, admin, log, kafka and publish; routes as a worker's, with the path as topic.
  Config base;
};

struct LoadedGate {
  std::optional<GateConfig> config;  // set if and only if `problems` is empty
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
