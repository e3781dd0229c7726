// An operator moves a partition under a worker that lives: it follows, and nothing doubles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sandbox/temporary_folder.hpp"
#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using testing::HasSubstr;

class Offsets : public testing::Test {
 protected:
  // One partition with payments [0, 20) booked by a worker that now idles.
  void SetUp() override {
    HAPAX_NEEDS_KAFKA();
    site = std::make_unique<Site>(1);
    producer = std::make_unique<Producer>(site->bootstrap());
    site->pay(*producer, 0, 20);
    worker = site->worker("w", {{"kafka", {{"session.timeout.ms", 30'000}}}});
    site->await_no_lag();
    site->await("SELECT next_offset FROM hapax.checkpoints", "20");
  }

  // As the owner: the worker's own role may not move anything.
  Said run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--url", site->database().owner().url});
    return hapax(std::move(arguments), worker->config());
  }

  std::string booked() { return site->database().value("SELECT count(*) FROM payments"); }

  std::unique_ptr<Site> site;
  std::unique_ptr<Producer> producer;
  std::unique_ptr<WorkerProcess> worker;
};

TEST_F(Offsets, AnIdleWorkerFollowsARewindAndDoublesNothing) {
  const Said said = run({"offsets", "rewind", site->topic() + "/0", "--to", "5", "--why", "drill"});
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text, HasSubstr("20 -> 5  (15 offsets)"));
  EXPECT_THAT(said.text, HasSubstr("workers notice within their checkpoint_interval"));
  worker->await("partition_started", {{"offset", 5}});
  site->await("SELECT next_offset FROM hapax.checkpoints", "20");
  site->await_no_lag();
  site->expect_exact(20);
  EXPECT_THAT(hapax({"offsets", "show", site->topic()}, worker->config()).text,
              HasSubstr("rewind"));
  expect_leaves(*worker);
}

TEST_F(Offsets, AForgottenKeyRunsAgainOnceItsMessageComesAgain) {
  EXPECT_EQ(run({"keys", "forget", "p7", "--why", "wrong account"}).code, 2) << "asked nobody";
  const Said said = run({"keys", "forget", "p7", "--why", "wrong account", "--yes"});
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text, HasSubstr("offsets rewind " + site->topic() + "/0 --to 7"));
  EXPECT_EQ(run({"offsets", "rewind", site->topic() + "/0", "--to", "7", "--why", "p7"}).code, 0);
  site->await("SELECT count(*) FROM payments WHERE id = 'p7'", "2");
  site->await("SELECT next_offset FROM hapax.checkpoints", "20");
  EXPECT_EQ(booked(), "21");
  expect_leaves(*worker);
}

// What runs when the partition is moved ends in a halt of the whole route.
TEST_F(Offsets, AHaltOfTheRouteFromBeforeASkipStopsThePartitionBehindIt) {
  site->database().run("SELECT pg_advisory_lock(1)");
  producer->send(site->payment(20, {{"do", "commit"}}));
  site->await("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", "1");
  EXPECT_EQ(
      run({"offsets", "skip", site->topic() + "/0", "--to", "21", "--why", "x", "--yes"}).code, 0);
  worker->await("fenced");
  EXPECT_EQ(worker->count("partition_started"), 1U) << "it waits for what runs";
  site->database().run("SELECT pg_advisory_unlock(1)");
  worker->await_not_ready("halted: handler_ended_transaction");
  site->await("SELECT reason, whole_route FROM hapax.halts WHERE ended_at IS NULL",
              "handler_ended_transaction|t");
  std::vector<std::string> retry = {"resume", site->topic(), "--decision", "retry", "--why", "f"};
  const Said asked = run(retry);
  EXPECT_EQ(asked.code, 2) << "there is no terminal to ask on";
  EXPECT_THAT(asked.text, HasSubstr("handler_ended_transaction since"));
  EXPECT_THAT(asked.text, HasSubstr("a part of its effect may stand"));
  EXPECT_EQ(site->database().count("SELECT count(*) FROM hapax.halts WHERE ended_at IS NULL"), 1);
  retry.emplace_back("--yes");
  EXPECT_EQ(run(retry).code, 0);
  worker->await("resumed");
  site->pay(*producer, 21, 5);
  site->await("SELECT count(*) FROM payments", "25");
  expect_leaves(*worker);
}

TEST_F(Offsets, ASkipLeavesOutWhatIsBetweenEvenWhatAWorkerHasInHand) {
  producer->send(site->payment(20, {{"do", "wait"}}));
  worker->await("attempt_failed", {{"offset", 20}});
  site->pay(*producer, 21, 4);  // other accounts: they pass it
  site->await("SELECT count(*) FROM payments", "24");
  const std::vector<std::string> skip = {"offsets", "skip",  site->topic() + "/0", "--to", "23",
                                         "--why",   "poison"};
  Said said = run(skip);
  EXPECT_EQ(said.code, 2) << "asked nobody";
  std::vector<std::string> sure = skip;
  sure.push_back("--yes");
  said = run(sure);
  EXPECT_EQ(said.code, 0) << said.text;
  worker->await("partition_started", {{"offset", 23}});
  site->await_no_lag();
  EXPECT_EQ(booked(), "24");
  EXPECT_EQ(site->database().value("SELECT next_offset FROM hapax.checkpoints"), "25");
  expect_leaves(*worker);
}

TEST_F(Offsets, WhatDoesNotExistIsToldWithWhatDoes) {
  Said said = run({"offsets", "rewind", "payment", "--to", "0", "--why", "x"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr("there are: " + site->topic()));
  said = run({"offsets", "rewind", site->topic() + "/9", "--to", "0", "--why", "x"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr("partitions 0 to 0"));
  said = run({"offsets", "skip", site->topic() + "/0", "--to", "21", "--why", "x", "--yes"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr("has offsets 0 to 20"));
  said = run({"offsets", "rewind", site->topic() + "/0", "--to", "20", "--why", "x"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr("stands at 20"));
  said = run({"offsets", "rewind", site->topic() + "/0", "--to", "soon", "--why", "x"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.text, HasSubstr("how long ago"));
  said = hapax({"offsets", "rewind", site->topic() + "/0", "--to", "5", "--why", "x"},
               worker->config());
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr("operator"));
  EXPECT_EQ(site->database().value("SELECT next_offset FROM hapax.checkpoints"), "20");
  expect_leaves(*worker);
}

TEST_F(Offsets, AGroupIsForgottenOnceItIsGone) {
  const auto forget = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"offsets", "forget-group", site->group(), "--why", "renamed"});
    return run(std::move(more));
  };
  const auto checkpoints = [&] {
    return site->database().count("SELECT count(*) FROM hapax.checkpoints");
  };
  const Said lives = forget({"--yes"});
  EXPECT_EQ(lives.code, 1) << lives.text;
  EXPECT_THAT(lives.text, HasSubstr("is not gone: it has 1 members"));
  EXPECT_EQ(forget({"--yes", "--topic", site->topic()}).code, 1);
  expect_leaves(*worker);
  EXPECT_EQ(forget({}).code, 2) << "asked nobody";
  EXPECT_EQ(forget({"--dry-run"}).code, 0);
  EXPECT_EQ(forget({"--yes", "--topic", "another"}).code, 1) << "it has none of that";
  site->database().run(
      "INSERT INTO hapax.outbox (group_id, topic, headers, idempotency_key, source_topic, "
      "source_generation, source_partition, source_offset) VALUES ('" +
      site->group() + "', 'receipts', '[]', 'k', '" + site->topic() + "', 1, 0, 1)");
  const Said unsent = forget({"--yes"});
  EXPECT_EQ(unsent.code, 1) << "no other relay would send it";
  EXPECT_THAT(unsent.text, HasSubstr("has 1 published records that are not sent"));
  EXPECT_EQ(checkpoints(), 1);
  site->database().run("DELETE FROM hapax.outbox");
  const Said gone = forget({"--yes"});
  EXPECT_EQ(gone.code, 0) << gone.text;
  EXPECT_EQ(checkpoints(), 0);
  EXPECT_EQ(site->database().count("SELECT count(*) FROM hapax.passed"), 0);
  EXPECT_EQ(site->database().value("SELECT action, target, why, facts->'before'->0->>'next_offset' "
                                   "FROM hapax.operator_log"),
            "offsets forget-group|" + site->group() + "|renamed|20");
  site->expect_exact(20);
  // It comes back: nothing runs before an operator has decided.
  worker->start_again();
  EXPECT_EQ(worker->await("halted").at("reason"), "checkpoint_missing");
  site->await("SELECT reason FROM hapax.halts WHERE ended_at IS NULL", "checkpoint_missing");
  EXPECT_EQ(site->database().value("SELECT count(*), count(DISTINCT id) FROM payments"), "20|20");
  expect_leaves(*worker);
}

// The worker lives each time, and the Kafka that the command asks cannot tell.
TEST_F(Offsets, AGroupIsNotForgottenIfKafkaDoesNotTell) {
  const auto forget = [&](const std::string& bootstrap) {
    const sandbox::TemporaryFolder folder("offsets");
    const auto path = folder.path() / "worker.json";
    std::ofstream(path)
        << site->options("w", {{"kafka", {{"bootstrap.servers", bootstrap}}}}).config.dump();
    Said said = hapax({"offsets", "forget-group", site->group(), "--why", "renamed", "--yes",
                       "--url", site->database().owner().url},
                      path);
    EXPECT_EQ(site->database().count("SELECT count(*) FROM hapax.checkpoints"), 1) << said.text;
    return said;
  };
  const Said away = forget("127.0.0.1:1");
  EXPECT_EQ(away.code, 4) << away.text;
  const Said other = forget(Site::mock_cluster().bootstrap());
  EXPECT_EQ(other.code, 1) << other.text;
  EXPECT_THAT(other.text, HasSubstr("give the configuration of that cluster"));
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
