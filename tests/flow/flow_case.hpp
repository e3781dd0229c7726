// The base of the tests of the promise: one database, one route, messages written as literals, and
// a handler that is a lambda. The code under test runs as the worker role.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flow/processor.hpp"
#include "support/database.hpp"

namespace hapax::flow {

// A record. The header "id" carries the idempotency key; the rest of the headers follow it.
struct Sent {
  std::string key = "k1";
  std::optional<std::string> payload = "10";
  std::int64_t offset = 0;
  std::optional<std::string> record_key = std::nullopt;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers = {};
  std::int64_t timestamp_ms = -1;
  TimestampType timestamp_type = TimestampType::none;
};

// What a worker would know of the message.
struct Given {
  std::string group = "group";
  std::int32_t generation = 1;
  std::int64_t guard_below = 0;
  int attempts = 0;
  int outages = 0;
  bool cautious = false;
  std::optional<std::string> skip = std::nullopt;
  std::chrono::milliseconds failing{0};
  std::string incarnation = "";
  std::optional<std::int64_t> announced = {};
  int crashes = 0;
  bool remembered = false;
  bool has_letter = false;
  int agains = 0;
  std::int64_t epoch = 0;
  bool settled = false;
  bool in_doubt = false;
  const traces::Trace* trace = nullptr;
  const payload::Reading* reading = nullptr;
  bool reads_late = false;  // the message is decoded behind its announcement
};

using Body = std::function<void(const Message&, Context&)>;

// Books the payload under the key, now.
inline void book(const Message& message, Context& context) {
  context.sql("INSERT INTO effects (key, note) VALUES ($1, $2)", *message.header("id"),
              *message.payload());
}

class FlowCase : public testing::Test {
 protected:
  FlowCase() {
    database.run(
        "CREATE TABLE effects (id bigint GENERATED ALWAYS AS IDENTITY, key text, note text);"
        "GRANT SELECT, INSERT, UPDATE, DELETE ON effects TO hapax_worker");
    route.topic = "payments";
    route.key.scope = "booking";
    route.key.sources = {{key::Source::Kind::header, {"id"}}};
    route.handler = {"booker", {}, "v7"};
    route.retry = {.max_attempts = 3,
                   .first = std::chrono::milliseconds(10),
                   .max = std::chrono::milliseconds(20)};
    route.retention = std::chrono::hours(1);
    route.max_result_bytes = 100;
    options = database.worker();
  }

  Processor make_processor(std::uint64_t seed = 1) const {
    return Processor([connect = options] { return store::Session(connect); }, seed);
  }

  // Runs the message once on the processor of this test. `runs` counts how often the body began.
  Outcome process(const Sent& sent, const Body& body = book, const Given& given = {}) {
    if (!processor_) processor_.emplace(make_processor());
    return process_on(*processor_, sent, body, given);
  }

  Outcome process_on(Processor& processor, const Sent& sent, const Body& body,
                     const Given& given = {}) {
    std::vector<Header> headers = {{"id", sent.key}};
    for (const auto& [name, value] : sent.headers) headers.push_back({name, value});
    Message::Parts parts;
    parts.coordinates = {route.topic, 3, sent.offset};
    parts.timestamp_ms = sent.timestamp_ms;
    parts.timestamp_type = sent.timestamp_type;
    parts.key = sent.record_key;
    parts.payload = sent.payload;
    parts.headers = headers;
    if (given.reading != nullptr && given.reading->is_readable())
      parts.decoded = given.reading->json;
    const Message message(parts);
    const auto task_with = [&](const payload::Reading* reading) {
      return Task{.route = route,
                  .message = message,
                  .group = given.group,
                  .generation = given.generation,
                  .guard_below = given.guard_below,
                  .attempts = given.attempts,
                  .outages = given.outages,
                  .cautious = given.cautious,
                  .skip = given.skip ? &*given.skip : nullptr,
                  .failing = given.failing,
                  .incarnation = given.incarnation,
                  .announced = given.announced,
                  .crashes = given.crashes,
                  .remembered = given.remembered,
                  .has_letter = given.has_letter,
                  .agains = given.agains,
                  .epoch = given.epoch,
                  .settled = given.settled,
                  .in_doubt = given.in_doubt,
                  .trace = given.trace,
                  .reading = reading};
    };
    Task task = task_with(given.reads_late ? nullptr : given.reading);
    std::optional<Task> read;
    if (given.reads_late)
      task.read = [&]() -> const Task& { return read.emplace(task_with(given.reading)); };
    CountingHandler handler(body, runs);
    return processor.process(task, handler);
  }

  // As a lane does: again and again, with what it learned, until settled or halted.
  Outcome settle(Processor& processor, const Sent& sent, const Body& body, Given given = {}) {
    Outcome last;
    for (int i = 0; i < 100; ++i) {
      const Outcome outcome = last = process_on(processor, sent, body, given);
      if (is_settled(outcome.result) || is_halt(outcome.result)) return outcome;
      if (outcome.lost_in_handler) ++given.outages;
      given.in_doubt = given.in_doubt || outcome.in_doubt;
      given.agains = outcome.result == Result::again ? given.agains + 1 : 0;
      given.attempts = std::max(given.attempts, outcome.attempts);
      if (outcome.result != Result::retry) continue;
      given.outages = std::min(given.outages, kMaxOutages - 1);
    }
    last.reason = "never settled: " + std::string(name_of(last.result)) + " " + last.reason;
    last.result = Result::halt_partition;
    return last;
  }

  Outcome settle(const Sent& sent, const Body& body, const Given& given = {}) {
    if (!processor_) processor_.emplace(make_processor());
    return settle(*processor_, sent, body, given);
  }

  // One message of each header, which outlives them.
  std::vector<Message> messages_of(const std::vector<Header>& headers,
                                   const std::vector<std::string>& payloads = {}) const {
    std::vector<Message> messages;
    for (std::size_t i = 0; i < headers.size(); ++i) {
      Message::Parts parts;
      parts.coordinates = {route.topic, 0, static_cast<std::int64_t>(i)};
      parts.payload = payloads.empty() ? std::string_view("book") : payloads[i];
      parts.headers = std::span(&headers[i], 1);
      messages.emplace_back(parts);
    }
    return messages;
  }

  // A batch of them, each of an order key of its own. All three outlive it.
  std::vector<Job> jobs_of(const std::vector<Message>& messages, const std::string& group,
                           Handler& handler) const {
    std::vector<Job> jobs;
    for (const Message& message : messages)
      jobs.push_back(
          {Task{.route = route, .message = message, .group = group}, &handler, jobs.size()});
    return jobs;
  }

  // By another worker, or by an operator: the partition's epoch rises.
  void take(int partition) {
    database.run(
        "INSERT INTO hapax.checkpoints AS c (group_id, topic, partition, key_spec, scope, epoch) "
        "VALUES ('group', '" +
        route.topic + "', " + std::to_string(partition) +
        ", '', '', 1) ON CONFLICT (group_id, topic, partition) DO UPDATE SET epoch = c.epoch + 1");
  }

  // So often the process died while the message ran, as far as hapax.attempts knows.
  void announce_crashes(int crashes, std::int64_t offset = 0) {
    database.run(
        "INSERT INTO hapax.attempts (group_id, topic, generation, partition, kafka_offset, count, "
        "crashes, last_error, handler, next_try) VALUES ('group', 'payments', 1, 3, " +
        std::to_string(offset) + ", 0, " + std::to_string(crashes) + ", '', 'booker', now())");
  }

  // All effects: "key=note", in order.
  std::string effects() {
    return database.value(
        "SELECT coalesce(string_agg(key || '=' || note, ' ' ORDER BY id), '') "
        "FROM effects");
  }
  // "status@offset", or "" if no message has the key.
  std::string key_row(const std::string& key = "k1") {
    return database.value(
        "SELECT status || '@' || kafka_offset FROM hapax.idempotency_keys "
        "WHERE key = '" +
        key + "'");
  }
  int count(const std::string& table) { return database.count("SELECT count(*) FROM " + table); }

  class CountingHandler final : public Handler {
   public:
    CountingHandler(const Body& body, std::atomic<int>& runs) : body_(body), runs_(runs) {}
    void handle(const Message& message, Context& context) override {
      ++runs_;
      body_(message, context);
    }

   private:
    const Body& body_;
    std::atomic<int>& runs_;
  };

  test::Database database;
  store::ConnectOptions options;  // of the processors; change it before the first message
  Route route;
  std::atomic<int> runs = 0;

 private:
  std::optional<Processor> processor_;
};

// So that a failed comparison prints words.
inline void PrintTo(Result result, std::ostream* out) { *out << name_of(result); }

}  // namespace hapax::flow
