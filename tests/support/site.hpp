// What a test's workers work on: a topic, a consumer group, and a database with a ledger in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "kafka/mock_cluster.hpp"
#include "support/database.hpp"
#include "support/kafka_server.hpp"
#include "support/producer.hpp"
#include "support/worker_process.hpp"

namespace hapax::support {

// The Kafka that all tests of this process share. The first call starts it. If a test stops it,
// that test starts it again. Precondition: on the main thread, after HAPAX_NEEDS_KAFKA().
KafkaServer& shared_kafka();

class Site {
 public:
  // On the shared Kafka: makes the topic.
  explicit Site(int partitions, const std::map<std::string, std::string>& topic_configs = {});
  // On librdkafka's mock cluster, shared by the process: needs no Java, but each joining takes
  // seconds.
  static Site on_mock_cluster(int partitions);
  static kafka::MockCluster& mock_cluster();

  const std::string& bootstrap() const { return bootstrap_; }
  const std::string& topic() const { return topic_; }
  const std::string& group() const { return group_; }
  int partitions() const { return partitions_; }
  test::Database& database() { return database_; }
  const test::Database& database() const { return database_; }

  // What a worker of this site is told; `patch` (RFC 7386) changes it.
  WorkerOptions options(const std::string& name, const nlohmann::json& patch = {}) const;

  // A worker that runs the scripted handler (tests/plugins/scripted.cpp).
  std::unique_ptr<WorkerProcess> worker(const std::string& name, const nlohmann::json& patch = {},
                                        const std::string& crash_at = {}) const;

  // A payment: its idempotency key, id and amount come of `number`, its account of `number` % 10.
  // `more` is merged into the payload, such as {"do", "fail"}.
  Outgoing payment(int number, const nlohmann::json& more = {}) const;
  // Sends payments [first, first + count).
  void pay(Producer& producer, int first, int count) const;

  // Returns once `sql` gives `wanted`. Throws: std::runtime_error at the timeout.
  void await(const std::string& sql, const std::string& wanted,
             std::chrono::milliseconds timeout = std::chrono::seconds(180));
  void await_booked(std::int64_t at_least);
  void await_no_lag(std::chrono::milliseconds timeout = std::chrono::seconds(180)) const;

  // A lease ends only with its time. After this no test waits for that. Precondition: the processes
  // that hold them are dead.
  void end_leases() { database_.run("UPDATE hapax.leases SET until = now()"); }

  // Fails the test if the ledger does not hold payments [0, payments) once each, or if there are
  // not `dead_letters`. Each payment has a completed key; by position none has.
  void expect_exact(int payments, int dead_letters = 0, bool by_position = false);

 private:
  Site(std::string bootstrap, std::string topic, int partitions, int session_timeout_ms);

  std::string bootstrap_;
  std::string topic_;
  std::string group_;
  int partitions_;
  int session_timeout_ms_;
  test::Database database_;
};

// Waits for the worker's end after SIGTERM: within 10 s and with exit code 0, or the test fails.
void expect_leaves(WorkerProcess& worker);

}  // namespace hapax::support
