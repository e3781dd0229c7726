// After a clean leave a changed key spec may start. A leave is clean only if no message still runs.
#include <gtest/gtest.h>

#include <chrono>

#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr const char* kOwner = "SELECT owner FROM hapax.checkpoints";
constexpr const char* kHeld =
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";

// Its key is another's: another header.
nlohmann::json other_spec() { return {{"route", {{"key", {{"header", "other-key"}}}}}}; }

TEST(Leave, IsNotCleanWhileAMessageRunsSoAChangedKeySpecIsRefused) {
  Site site = Site::on_mock_cluster(1);
  site.database().run("SELECT pg_advisory_lock(1)");
  Producer producer(site.bootstrap());
  producer.send(site.payment(0, {{"do", "hold"}}));
  const auto worker = site.worker(
      "w", {{"postgres", {{"lock_timeout", "20s"}}}, {"worker", {{"revoke_timeout", "100ms"}}}});
  site.await(kHeld, "1");
  EXPECT_EQ(worker->stop().code, 1) << "a handler has not come back";
  EXPECT_EQ(worker->count("revoke_timeout"), 1U);
  EXPECT_EQ(site.database().value(kOwner), "w");

  const auto changed = site.worker("changed", other_spec());
  changed->await("halted", {{"reason", "key_spec_changed"}});
  expect_leaves(*changed);
}

constexpr const char* kOpen =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND state = 'idle in transaction' AND now() - state_change > interval '300 ms'";

nlohmann::json brief() {
  return {{"worker", {{"revoke_timeout", "1s"}, {"shutdown_timeout", "2s"}}},
          {"postgres", {{"idle_in_transaction_timeout", "1h"}, {"lock_timeout", "20s"}}}};
}

TEST(Leave, OfAHandlerThatDoesNotComeBackIsAFailureAndNamesIt) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  producer.send(site.payment(0, {{"do", "hang"}}));
  const auto worker = site.worker("w", brief());
  worker->await("partition_started");
  site.await(kOpen, "1");
  EXPECT_EQ(worker->stop().code, 1);
  const auto told = worker->await(
      "still_runs",
      {{"topic", site.topic()}, {"partition", 0}, {"offset", 0}, {"handler", "scripted"}});
  EXPECT_TRUE(told.contains("lane"));
}

// The partition is halted, so the worker does not drain it. Its lane is busy all the same.
TEST(Leave, WaitsNoLongerForAHandlerOfAHaltedPartition) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  Outgoing hangs = site.payment(0, {{"do", "hang"}});
  hangs.key = "a";
  producer.send(hangs);
  const auto worker = site.worker("w", brief());
  worker->await("partition_started");
  site.await(kOpen, "1");
  Outgoing commits = site.payment(1, {{"do", "commit"}});
  commits.key = "b";
  producer.send(commits);
  worker->await("halted", {{"reason", "handler_ended_transaction"}});
  EXPECT_EQ(worker->stop().code, 1);
  worker->await("still_runs", {{"partition", 0}, {"offset", 0}});
}

// Retention waits for a lock, and no message does.
TEST(Leave, WaitsNoLongerForAStatementOfRetention) {
  Site site = Site::on_mock_cluster(1);
  site.database().run("BEGIN; LOCK TABLE hapax.idempotency_keys");
  const auto worker = site.worker("w", brief());
  worker->await("partition_started");
  site.await("SELECT least(count(*), 1) FROM pg_locks WHERE NOT granted", "1");
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(worker->stop().code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(6));
}

// A partition's start waits for a lock, and no message does.
TEST(Leave, WaitsNoLongerForAStatementOfStarts) {
  Site site = Site::on_mock_cluster(1);
  site.database().run("BEGIN; LOCK TABLE hapax.checkpoints IN EXCLUSIVE MODE");
  const auto worker = site.worker("w", brief());
  worker->await("assigned");
  site.await(
      "SELECT least(count(*), 1) FROM pg_locks WHERE NOT granted "
      "AND relation = 'hapax.checkpoints'::regclass",
      "1");
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(worker->stop().code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(6));
  EXPECT_EQ(worker->count("partition_started"), 0U);
}

TEST(Leave, ALaterSecondSignalStopsAtOnceAndIsTold) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  producer.send(site.payment(0, {{"do", "hang"}}));
  nlohmann::json patient = brief();
  patient["worker"] = {{"revoke_timeout", "1m"}, {"shutdown_timeout", "1h"}};
  const auto worker = site.worker("w", patient);
  worker->await("partition_started");
  site.await(kOpen, "1");
  worker->terminate();
  worker->await("stopping");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const std::string line = "a second signal: stopping at once";
  while (worker->output().find(line) == std::string::npos &&
         std::chrono::steady_clock::now() < until)
    worker->terminate();
  EXPECT_EQ(worker->ended().code, 1) << worker->output();
  EXPECT_NE(worker->output().find(line), std::string::npos);
  EXPECT_EQ(worker->count("stopped"), 0U);
}

// librdkafka 2.0 may wait for a thread of its own for ever. All is settled then.
TEST(Leave, WaitsNoLongerForAKafkaClientThatDoesNotEnd) {
  Site site = Site::on_mock_cluster(1);
  const auto worker = site.worker("w", {}, "client_ends:hang");
  worker->await("partition_started");
  EXPECT_EQ(worker->stop(std::chrono::seconds(20)).code, 0);
  EXPECT_EQ(worker->count("gave_up_waiting"), 1U);
}

TEST(Leave, TwoSignalsThatComeTogetherAreOne) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 5);
  const auto worker = site.worker("w");
  site.await_no_lag();
  worker->terminate();
  worker->await("stopping");  // else the kernel makes one of them
  EXPECT_EQ(worker->stop().code, 0) << worker->output();
  EXPECT_EQ(worker->count("stopped"), 1U);
}

TEST(Leave, IsCleanIfNothingRunsSoAChangedKeySpecIsLetIn) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 5);
  const auto worker = site.worker("w");
  site.await_no_lag();
  expect_leaves(*worker);
  EXPECT_EQ(site.database().value(kOwner), "null");
  const auto changed = site.worker("changed", other_spec());
  changed->await("partition_started");
  expect_leaves(*changed);
}

TEST(Leave, BeforeItHasJoinedIsNoLeaveOfTheGroup) {
  Site site = Site::on_mock_cluster(1);
  const auto worker = site.worker(
      "w", {{"kafka", {{"bootstrap.servers", "127.0.0.1:1"}, {"wait_for_topics", true}}}});
  worker->await("waiting_for_kafka");
  expect_leaves(*worker);
  EXPECT_EQ(worker->count("stopping"), 0U) << worker->output();
}

TEST(Leave, OfAHandlerThatCallsExitIsAFailure) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  producer.send(site.payment(0, {{"do", "exit"}}));  // with 0
  const auto worker = site.worker("w");
  EXPECT_EQ(worker->ended().code, 1) << worker->output();
  EXPECT_EQ(worker->count("handler_exited"), 1U);
  EXPECT_EQ(site.database().value(kOwner), "w");
}

}  // namespace
}  // namespace hapax::support
