#include "support/site.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "support/group_lag.hpp"
#include "support/kafka_admin.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kAskSiteAgain = 20ms;

// The mock cluster keeps the first who joins waiting for 3 s, and his session runs meanwhile.
constexpr int kSessionTimeoutMs = 2'000;
constexpr int kMockSessionTimeoutMs = 6'000;

// No primary key: a double effect must be able to happen, or no test would see it.
constexpr const char* kLedger =
    "CREATE TABLE payments (nr bigserial, id text, account text, amount_minor bigint);"
    "GRANT SELECT, INSERT ON payments TO hapax_worker;"
    "GRANT USAGE ON payments_nr_seq TO hapax_worker";

std::string next_topic() {
  static int made = 0;
  return "topic" + std::to_string(++made);
}

std::string made_topic(int partitions, const std::map<std::string, std::string>& configs) {
  std::string topic = next_topic();
  create_topic(shared_kafka().bootstrap(), topic, partitions, configs);
  return topic;
}

}  // namespace

KafkaServer& shared_kafka() {
  // Sessions shorter than a production broker allows, so that a killed worker is missed soon.
  static const std::map<std::string, std::string> settings = {
      {"group.min.session.timeout.ms", "1000"}};
  static KafkaServer server(settings);
  return server;
}

Site::Site(int partitions, const std::map<std::string, std::string>& topic_configs)
    : Site(shared_kafka().bootstrap(), made_topic(partitions, topic_configs), partitions,
           kSessionTimeoutMs) {}

kafka::MockCluster& Site::mock_cluster() {
  static kafka::MockCluster cluster;
  return cluster;
}

Site Site::on_mock_cluster(int partitions) {
  const std::string topic = next_topic();
  mock_cluster().create_topic(topic, partitions);
  return Site(mock_cluster().bootstrap(), topic, partitions, kMockSessionTimeoutMs);
}

Site::Site(std::string bootstrap, std::string topic, int partitions, int session_timeout_ms)
    : bootstrap_(std::move(bootstrap)),
      topic_(std::move(topic)),
      group_("group-of-" + topic_),
      partitions_(partitions),
      session_timeout_ms_(session_timeout_ms) {
  database_.run(kLedger);
}

WorkerOptions Site::options(const std::string& name, const nlohmann::json& patch) const {
  nlohmann::json config = {
      {"kafka",
       {{"bootstrap.servers", bootstrap_},
        {"group.id", group_},
        {"session.timeout.ms", session_timeout_ms_},
        {"heartbeat.interval.ms", 400},
        {"fetch.wait.max.ms", 50},
        {"reconnect.backoff.ms", 20},
        {"reconnect.backoff.max.ms", 500}}},
      {"postgres", {{"url", database_.worker().url}, {"idle_in_transaction_timeout", "2s"}}},
      {"worker", {{"name", name}, {"lanes", 4}, {"checkpoint_interval", "200ms"}}},
      {"routes",
       {{{"topic", topic_},
         {"handler", "scripted"},
         {"plugin", HAPAX_BINARY_DIR "/lib/libscripted.so"},
         {"key", {{"header", "idempotency-key"}}},
         {"retry", {{"max_attempts", 2}, {"first", "20ms"}, {"max", "50ms"}}}}}}};
  // A patch cannot reach into an array, so "route" is the only route.
  nlohmann::json rest = patch.is_null() ? nlohmann::json::object() : patch;
  if (rest.contains("route")) config["routes"][0].merge_patch(rest["route"]);
  rest.erase("route");
  config.merge_patch(rest);
  return {config, {}};
}

std::unique_ptr<WorkerProcess> Site::worker(const std::string& name, const nlohmann::json& patch,
                                            const std::string& crash_at) const {
  WorkerOptions told = options(name, patch);
  told.crash_at = crash_at;
  return std::make_unique<WorkerProcess>(std::move(told));
}

Outgoing Site::payment(int number, const nlohmann::json& more) const {
  const std::string id = "p" + std::to_string(number);
  const std::string account = "a" + std::to_string(number % 10);
  nlohmann::json payload = {{"id", id}, {"account", account}, {"amount_minor", number + 1}};
  if (!more.is_null()) payload.update(more);
  return {topic_, payload.dump(), account, {{"idempotency-key", id}}, number % partitions_, 0};
}

void Site::pay(Producer& producer, int first, int count) const {
  for (int number = first; number < first + count; ++number) producer.produce(payment(number));
  producer.flush();
}

void Site::await(const std::string& sql, const std::string& wanted,
                 std::chrono::milliseconds timeout) {
  const auto deadline = steady_clock::now() + timeout;
  std::string found;
  while ((found = database_.value(sql)) != wanted) {
    if (steady_clock::now() >= deadline)
      throw std::runtime_error(sql + " gave '" + found + "', never '" + wanted + "'");
    std::this_thread::sleep_for(kAskSiteAgain);
  }
}

void Site::await_booked(std::int64_t at_least) {
  await("SELECT count(*) >= " + std::to_string(at_least) + " FROM payments", "t", 600s);
}

void Site::await_no_lag(std::chrono::milliseconds timeout) const {
  support::await_no_lag(bootstrap_, group_, topic_, partitions_, timeout);
}

void Site::expect_exact(int payments, int dead_letters, bool by_position) {
  const std::string wanted = std::to_string(payments);
  EXPECT_EQ(database_.value("SELECT count(*) FROM payments"), wanted);
  EXPECT_EQ(database_.value("SELECT count(*) FROM generate_series(0, " + wanted +
                            " - 1) AS n JOIN payments ON id = 'p' || n AND amount_minor = n + 1"),
            wanted)
      << "the payments that were sent are not those that were booked";
  EXPECT_EQ(database_.value("SELECT count(*) FROM hapax.idempotency_keys "
                            "WHERE status = 'completed'"),
            by_position ? "0" : wanted);
  EXPECT_EQ(database_.count("SELECT count(*) FROM hapax.dead_letters"), dead_letters)
      << database_.value("SELECT partition, kafka_offset, reason, error FROM hapax.dead_letters");
  EXPECT_EQ(database_.value("SELECT partition, reason, detail FROM hapax.halts "
                            "WHERE ended_at IS NULL"),
            "");
}

void expect_leaves(WorkerProcess& worker) {
  const sandbox::Exit exit = worker.stop(60s);  // not a promise: a machine may be busy
  EXPECT_TRUE(exit.success()) << exit.text() << '\n' << worker.output();
}

}  // namespace hapax::support
