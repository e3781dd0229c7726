// The base of the tests of the gate. Each has a gate on a port of its own, a real PostgreSQL, and a
// handler that is a lambda.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gate/accept.hpp"
#include "gate/gate.hpp"
#include "gate/http_client.hpp"
#include "key/sha256.hpp"
#include "support/database.hpp"

namespace hapax::gate {

// The longest that a test waits for anything of the gate. On a busy machine all of it takes
// seconds.
inline constexpr auto kGatePatience = std::chrono::seconds(60);

using Headers = std::vector<std::pair<std::string, std::string>>;

// Opened by a test, awaited by handlers.
class Door {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // A handler stands in front of it, until it is open.
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void await_waiting(int handlers) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kGatePatience, [&] { return waiting_ >= handlers; }))
      throw std::runtime_error("there are never " + std::to_string(handlers) + " at the door");
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int waiting_ = 0;
};

// Books the body under the key, and tells its number.
inline void book(const Message& message, Context& context) {
  context.sql("INSERT INTO effects (key, note) VALUES ($1, $2)",
              message.header("idempotency-key").value_or("none"), *message.payload());
  context.respond(201, {{"Content-Type", "application/json"}, {"Location", "/payments/17"}},
                  R"({"id":17})");
}

// One gate, as one process has it.
class Running {
 public:
  // `booker`: the handler of all routes that do not accept. `largest`: record of any topic.
  Running(const config::GateConfig& config, const HandlerFactory& booker, std::size_t largest,
          const store::ConnectOptions& options)
      : config_(config),
        operations_(Operations::of(config_)),
        tls_(config_.gate.tls.is_on() ? std::make_unique<Tls>(config_.gate.tls) : nullptr),
        metrics({}),
        status(metrics),
        gate(
            config_, routes(booker, largest), [options] { return store::Session(options); }, status,
            metrics, operations_ ? &*operations_ : nullptr, tls_.get()) {
    gate.start();
  }

 private:
  std::vector<flow::Route> routes(const HandlerFactory& booker, std::size_t largest) const {
    auto publishing = std::make_shared<flow::Publishing>();
    for (const std::string& topic : config_.base.publish.topics)
      publishing->topics[topic] = largest;
    auto handlers = own_handlers(config_.gate, operations_ ? &*operations_ : nullptr);
    handlers.push_back(booker);
    std::vector<flow::Route> made;
    for (const config::Route& route : config_.base.routes) {
      const auto own = std::ranges::find(handlers, route.handler, &HandlerFactory::name);
      made.push_back(flow::make_route(route, own == handlers.end() ? booker : *own));
      made.back().publishing = publishing;
    }
    return made;
  }

  const config::GateConfig config_;
  const std::optional<Operations> operations_;
  const std::unique_ptr<Tls> tls_;

 public:
  observe::Metrics metrics;
  Status status;
  Gate gate;
};

// "" if there is no such series.
inline std::string metric(const Running& gate, const std::string& series) {
  const std::string text = gate.metrics.text();
  const std::size_t at = text.find("\n" + series + " ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + series.size() + 2;
  return text.substr(begin, text.find('\n', begin) - begin);
}

// Polls, because the gate tells tests nothing else of its queue and its lanes.
// Throws: std::runtime_error after kGatePatience.
inline void await_metric(const Running& gate, const std::string& series,
                         const std::string& wanted) {
  const auto deadline = std::chrono::steady_clock::now() + kGatePatience;
  while (metric(gate, series) != wanted) {
    if (std::chrono::steady_clock::now() >= deadline)
      throw std::runtime_error(series + " was '" + metric(gate, series) + "', never " + wanted);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

class GateCase : public testing::Test {
 protected:
  using Body = std::function<void(const Message&, Context&)>;

  GateCase() {
    database.run(
        "CREATE TABLE effects (id bigint GENERATED ALWAYS AS IDENTITY, key text, note text);"
        "GRANT SELECT, INSERT, UPDATE, DELETE ON effects TO hapax_worker");
    options = database.worker();
    config.gate.listen = {"127.0.0.1", 0};
    config.gate.lanes = 4;
    config.gate.wait = std::chrono::milliseconds(300);
    config.gate.shutdown_timeout = std::chrono::seconds(10);
    config.gate.callers.tokens = {{"ann", key::sha256("token-of-ann")},
                                  {"bob", key::sha256("token-of-bob")}};
    add_route({"/payments"});
  }

  void add_route(config::GateRoute route) {
    config::Route& base = config.base.routes.emplace_back();
    base.topic = route.path;
    base.key.scope = config.gate.scope;
    base.retention = config.gate.retention;
    base.batch = config::kGateBatch;
    config.gate.routes.push_back(std::move(route));
  }

  std::unique_ptr<Running> make_gate() {
    const HandlerFactory booker{"booker", [this] { return std::make_unique<Counting>(*this); }};
    return std::make_unique<Running>(config, booker, largest, options);
  }

  Running& gate() {
    if (!running_) running_ = make_gate();
    return *running_;
  }
  std::uint16_t port() { return gate().gate.port(); }

  static std::string request(const std::string& method, const std::string& target,
                             const Headers& headers, const std::string& content = {}) {
    std::string text = method + " " + target + " HTTP/1.1\r\nHost: gate\r\n";
    for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
    if (!content.empty()) text += "Content-Length: " + std::to_string(content.size()) + "\r\n";
    return text + "\r\n" + content;
  }

  static Headers as_ann(Headers headers = {}) {
    headers.emplace_back("Authorization", "Bearer token-of-ann");
    return headers;
  }
  static Headers keyed(const std::string& key, Headers headers = {}) {
    headers.emplace_back("Idempotency-Key", key);
    return as_ann(std::move(headers));
  }

  Reply ask(const std::string& text) { return ask(text, port()); }
  static Reply ask(const std::string& text, std::uint16_t port) {
    HttpClient client(port);
    client.send(text);
    return client.read();
  }

  // Of ann.
  Reply post(const std::string& key, const std::string& content = "10", Headers headers = {},
             const std::string& target = "/payments") {
    return ask(request("POST", target, keyed(key, std::move(headers)), content));
  }

  // All effects: "key=note", in order.
  std::string effects() {
    return database.value(
        "SELECT coalesce(string_agg(key || '=' || note, ' ' ORDER BY id), '') FROM effects");
  }
  int keys() { return database.count("SELECT count(*) FROM hapax.idempotency_keys"); }

  test::Database database;
  store::ConnectOptions options;
  config::GateConfig config;
  Body body = book;
  std::atomic<int> runs = 0;
  std::size_t largest = 1'000'000;  // record of a topic, bytes

 private:
  class Counting final : public Handler {
   public:
    explicit Counting(GateCase& test) : test_(test) {}
    void handle(const Message& message, Context& context) override {
      ++test_.runs;
      test_.body(message, context);
    }

   private:
    GateCase& test_;
  };

  std::unique_ptr<Running> running_;  // last: its handlers use the rest
};

}  // namespace hapax::gate
