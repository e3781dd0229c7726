// The base of the tests of requests that a gate accepts. A worker is a Processor that takes the
// records out of the outbox, as if Kafka had brought them.
#pragma once

#include "flow/processor.hpp"
#include "gate/gate_case.hpp"
#include "store/worker/outbox_headers.hpp"

namespace hapax::gate {

class AcceptCase : public GateCase {
 protected:
  AcceptCase() {
    config.base.kafka.properties["group.id"] = "bookers";
    config.base.publish.topics = {"requests"};
    config.gate.operations_key = std::string(64, 'k');
    config.gate.routes.clear();
    config.base.routes.clear();
    add_accepting("/payments", {"requests", "booking", "", ""});
    config::GateRoute own{config::kOperationsPath, {"GET"}};
    add_route(own);
    config.base.routes.back().handler = config::kOperationsHandler;
    // The gate's own thread looks at no outcome, so that only a test does.
    database.run(
        "INSERT INTO hapax.leases (name, holder, until)"
        " VALUES ('outcomes of gate/gate', 'the test', 'infinity')");
    worker_route.topic = "requests";
    worker_route.key.scope = "booking";
    worker_route.key.sources = {{key::Source::Kind::header, {"idempotency-key"}}};
    worker_route.handler = {"booker", {}, "v1"};
    worker_route.retry = {.max_attempts = 1};
    worker_route.retention = std::chrono::hours(24);
    worker_route.max_result_bytes = 10'000;
  }

  // In front of the operations, whose route is the last.
  void add_accepting(const std::string& path, const config::GateAccept& accept) {
    config::GateRoute route{path};
    route.accept = accept;
    config.gate.routes.insert(config.gate.routes.begin(), route);
    config::Route base;
    base.topic = path;
    base.handler = config::kAcceptHandler;
    base.key.scope = config.gate.scope;
    base.retention = config.gate.retention;
    base.batch = config::kGateBatch;
    config.base.routes.insert(config.base.routes.begin(), base);
  }

  // Runs all records that wait in the outbox in the worker, in order, and removes them.
  using Handle = std::function<void(const Message&, Context&)>;
  flow::Outcome work(const Handle& handle) {
    flow::Outcome outcome;
    const int rows = database.count("SELECT count(*) FROM hapax.outbox");
    for (int row = 0; row < rows; ++row) outcome = work_next(handle);
    return outcome;
  }

  // The first of them. `skip`: an operator has decided so.
  flow::Outcome work_next(const Handle& handle, const std::string* skip = nullptr) {
    struct Lambda final : Handler {
      explicit Lambda(const Handle& with) : handle_(with) {}
      void handle(const Message& message, Context& context) override { handle_(message, context); }
      const Handle& handle_;
    } handler(handle);
    flow::Processor processor([connect = options] { return store::Session(connect); }, 1);
    const auto first = [&](const std::string& column) {
      return database.value("SELECT " + column + " FROM hapax.outbox ORDER BY id LIMIT 1");
    };
    const std::string payload = first("convert_from(payload, 'UTF8')");
    const std::string key = first("idempotency_key");
    const std::string origin = first(
        "concat_ws('/', 'gate', source_topic, source_generation, source_partition, source_offset)");
    const auto sent = store::outbox_headers_of(first("headers"));
    std::vector<Header> headers{{"idempotency-key", key}, {"hapax-origin", origin}};
    for (const auto& [name, value] : sent) headers.push_back({name, value});
    const std::string group = "bookers";
    const Message message(Message::Parts{
        .coordinates = {worker_route.topic, 0, offset++}, .payload = payload, .headers = headers});
    const flow::Outcome outcome = processor.process(
        flow::Task{.route = worker_route, .message = message, .group = group, .skip = skip},
        handler);
    database.run("DELETE FROM hapax.outbox WHERE id = (SELECT min(id) FROM hapax.outbox)");
    return outcome;
  }

  // Of ann.
  Reply look(const std::string& location) { return ask(request("GET", location, as_ann())); }
  static Headers as_bob(Headers headers = {}) {
    headers.emplace_back("Authorization", "Bearer token-of-bob");
    return headers;
  }

  // The idempotency key of the record that ann's request became.
  std::string record_key(const std::string& key) {
    return Operations::of(config)->record_key(
        "ann", key,
        database.value(
            "SELECT encode(fingerprint, 'hex') FROM hapax.idempotency_keys WHERE key = '" + key +
            "' AND scope = 'gate' AND tenant = 'ann'"));
  }

  // As the outbox has it.
  std::string record(const std::string& columns) {
    return database.value("SELECT " + columns + " FROM hapax.outbox ORDER BY id");
  }
  std::string expires() {
    return database.value(
        "SELECT CASE WHEN expires_at > now() + interval '50 years' THEN 'waits' ELSE "
        "(expires_at - now() > interval '167 hours')::text END FROM hapax.idempotency_keys "
        "WHERE scope = 'gate'");
  }

  flow::Route worker_route;
  std::int64_t offset = 0;  // of the next record
};

}  // namespace hapax::gate
