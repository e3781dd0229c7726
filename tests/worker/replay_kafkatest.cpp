// `hapax dead replay` from the command line to the effect. An edited payload completes once, even
// if two operators order it, and at each point at which the worker may die.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "support/site.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class ReplayCommand : public testing::Test {
 protected:
  ReplayCommand() {
    auto config = site.options("operator").config;
    std::ofstream(folder.path() / "worker.json") << config.dump();
    std::ofstream(folder.path() / "fixed.json") << site.payment(1).payload.value_or("");
  }

  // A worker that has given payment 1 up.
  std::unique_ptr<WorkerProcess> worker_with_dead_letter(const std::string& crash_at = {}) {
    Producer(site.bootstrap()).send(site.payment(1, {{"do", "reject"}}));
    auto worker = site.worker("w", {}, crash_at);
    worker->await("dead_letter", {{"reason", "rejected"}});
    return worker;
  }

  std::unique_ptr<sandbox::ChildProcess> start(const std::vector<std::string>& arguments,
                                               const std::string& log = "log") {
    sandbox::Program program;
    program.argv = {HAPAX_BINARY_DIR "/bin/hapax", "dead"};
    program.argv.insert(program.argv.end(), arguments.begin(), arguments.end());
    for (const std::string& more : {std::string("-c"), (folder.path() / "worker.json").string()})
      program.argv.push_back(more);
    program.output = folder.path() / log;
    return std::make_unique<sandbox::ChildProcess>(program);
  }
  std::vector<std::string> ordering(const std::string& order, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), order);
    for (const std::string& more :
         {std::string("--why"), std::string("mended"), std::string("--who"), std::string("ann"),
          std::string("--yes"), std::string("--url"), site.database().owner().url})
      arguments.push_back(more);
    return arguments;
  }
  // Returns its exit code. The functions below read its output.
  int run(const std::vector<std::string>& arguments) {
    std::ofstream(folder.path() / "log", std::ios::trunc).close();
    const auto exit = start(arguments)->wait(60s);
    return exit ? exit->code : -1;
  }
  std::string said(const std::string& log = "log") const {
    std::ostringstream text;
    text << std::ifstream(folder.path() / log).rdbuf();
    return text.str();
  }
  std::string fixed() const { return folder.path() / "fixed.json"; }

  void expect_replayed_once() {
    EXPECT_EQ(site.database().value("SELECT id, amount_minor FROM payments"), "p1|2");
    EXPECT_EQ(site.database().value("SELECT outcome FROM hapax.replays"), "completed");
    EXPECT_EQ(site.database().value("SELECT ended_as, ended_by, ended_why FROM hapax.dead_letters"),
              "replayed|ann|mended");
    EXPECT_EQ(site.database().value("SELECT status FROM hapax.idempotency_keys"), "completed");
  }

  Site site = Site::on_mock_cluster(1);
  sandbox::TemporaryFolder folder{"replay"};
};

TEST_F(ReplayCommand, CompletesAnEditedDeadLetterOnceAndTellsIt) {
  const auto worker = worker_with_dead_letter();
  EXPECT_EQ(run(ordering("replay", {"1"})), 1) << "it is as bad as it was";
  EXPECT_THAT(said(), HasSubstr("replayed 1: 0 completed, 0 refused, 1 failed"));
  EXPECT_THAT(said(), HasSubstr("dead letter 1 failed: rejected: told to reject"));
  EXPECT_EQ(run({"list"}), 0);
  EXPECT_THAT(said(), HasSubstr("open"));
  site.database().run("DELETE FROM hapax.replays");
  EXPECT_EQ(run(ordering("replay", {"1", "--payload", fixed()})), 0) << said();
  EXPECT_THAT(said(), HasSubstr("replayed 1: 1 completed"));
  expect_replayed_once();
  EXPECT_EQ(run(ordering("replay", {"1"})), 1);
  EXPECT_THAT(said(), HasSubstr("dead letter 1 was replayed already"));
  EXPECT_EQ(run({"list"}), 0);
  EXPECT_THAT(said(), HasSubstr("no open dead letter"));
  EXPECT_EQ(run({"export", "--state", "all"}), 0);
  EXPECT_THAT(said(), HasSubstr("\"outcome\":\"completed\""));
  expect_replayed_once();
  const std::string metrics = worker->get("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("hapax_replays_total{outcome=\"failed\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("hapax_replays_total{outcome=\"completed\"} 1"));
  expect_leaves(*worker);
}

TEST_F(ReplayCommand, RunsOnceForTwoOperatorsAtOnce) {
  const auto worker = worker_with_dead_letter();
  site.database().run("UPDATE hapax.dead_letters SET payload = convert_to('" +
                      site.payment(1).payload.value_or("") + "', 'UTF8')");
  const auto first = start(ordering("replay", {"1"}), "first");
  const auto second = start(ordering("replay", {"--reason", "rejected"}), "second");
  const auto of_first = first->wait(60s);
  const auto of_second = second->wait(60s);
  ASSERT_TRUE(of_first && of_second);
  expect_replayed_once();
  // The later one finds it wanted, or done already.
  EXPECT_TRUE(of_first->code == 0 || of_second->code == 0) << said("first") << said("second");
  EXPECT_EQ(worker->count("replay"), 1U);
  expect_leaves(*worker);
}

TEST_F(ReplayCommand, NeedsAnAnswerOrYesAndDryRunChangesNothing) {
  const auto worker = worker_with_dead_letter();
  EXPECT_EQ(run({"replay", "1", "--why", "x", "--who", "ann"}), 2);
  EXPECT_THAT(said(), HasSubstr("--yes"));
  EXPECT_EQ(run({"discard", "--all", "--why", "x", "--who", "ann"}), 2);
  EXPECT_EQ(run(ordering("replay", {})), 2);
  EXPECT_THAT(said(), HasSubstr("which dead letters?"));
  EXPECT_EQ(run(ordering("replay", {"17"})), 1);
  EXPECT_THAT(said(), HasSubstr("there is no dead letter 17; the newest"));
  EXPECT_EQ(run(ordering("replay", {"--all", "--payload", fixed()})), 2);
  EXPECT_EQ(run(ordering("replay", {"--all", "--dry-run"})), 0);
  EXPECT_THAT(said(), HasSubstr("dry run: 1 would run again"));
  EXPECT_EQ(run(ordering("discard", {"--all", "--dry-run"})), 0);
  EXPECT_EQ(run({"replay", "1", "--why", "x", "--who", "ann", "--yes"}), 1);
  EXPECT_THAT(said(), HasSubstr("operator's rights"));
  EXPECT_EQ(site.database().count("SELECT count(*) FROM hapax.replays"), 0);
  EXPECT_EQ(site.database().count("SELECT count(*) FROM hapax.operator_log"), 0);
  EXPECT_EQ(run(ordering("discard", {"1"})), 0);
  EXPECT_THAT(said(), HasSubstr("discarded: 1"));
  expect_leaves(*worker);
}

TEST_F(ReplayCommand, TellsThatNoWorkerTakesItAndCancelsIt) {
  const auto worker = worker_with_dead_letter();
  site.database().run(
      "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, "
      "reason, detail, halted_by) VALUES ('" +
      site.group() + "', '" + site.topic() + "', 0, true, 1, 'breaker', 'by the test', 'test')");
  EXPECT_EQ(run(ordering("replay", {"1", "--no-wait"})), 0);
  worker->await_metric("hapax_replays_open 1");
  expect_leaves(*worker);
  EXPECT_EQ(run(ordering("replay", {"1", "--no-wait"})), 0);
  EXPECT_THAT(said(), HasSubstr("dead letter 1 is wanted already, by ann"));
  EXPECT_EQ(run(ordering("replay", {"1", "--payload", fixed(), "--no-wait"})), 1);
  EXPECT_THAT(said(), HasSubstr("yours was not added"));
  const auto waiting = start(ordering("replay", {"1"}), "waiting");
  EXPECT_TRUE(waiting->wait_for_line("no worker has taken a replay for 15 s", 60s));
  EXPECT_EQ(run(ordering("replay", {"1", "--cancel"})), 0);
  EXPECT_THAT(said(), HasSubstr("cancelled: 1"));
  const auto exit = waiting->wait(60s);
  EXPECT_EQ(exit ? exit->code : -1, 1);
  EXPECT_THAT(said("waiting"), HasSubstr("1 cancelled"));
}

TEST_F(ReplayCommand, HandlerThatHangsInAReplayEndsTheProcessAndCountsTheRun) {
  Producer(site.bootstrap()).send(site.payment(1, {{"do", "reject"}}));
  const auto worker = site.worker("w", {{"worker", {{"handler_timeout", "1s"}}}});
  worker->await("dead_letter");
  std::ofstream(folder.path() / "slow.json", std::ios::trunc)
      << site.payment(1, {{"do", "sleep"}, {"seconds", 30}}).payload.value_or("");
  EXPECT_EQ(run(ordering("replay", {"1", "--payload", folder.path() / "slow.json", "--no-wait"})),
            0);
  EXPECT_EQ(worker->ended().code, 1) << worker->output();
  EXPECT_EQ(worker->count("handler_hangs"), 1U);
  EXPECT_EQ(site.database().value("SELECT runs, claimed_by, outcome FROM hapax.replays"),
            "1|w|null");
}

class ReplayCrash : public ReplayCommand, public testing::WithParamInterface<const char*> {};

TEST_P(ReplayCrash, IsFinishedOnceByAnotherWorker) {
  const auto worker = worker_with_dead_letter(GetParam());
  ASSERT_EQ(run(ordering("replay", {"1", "--payload", fixed(), "--no-wait"})), 0) << said();
  EXPECT_EQ(worker->ended().signal, SIGKILL) << worker->output();
  const bool committed = std::string(GetParam()) == "replay_committed";
  EXPECT_EQ(site.database().count("SELECT count(*) FROM payments"), committed ? 1 : 0);
  site.database().run("UPDATE hapax.replays SET claimed_until = now()");  // its lease is over
  worker->start_again();
  if (!committed) worker->await("replay", {{"outcome", "completed"}});
  worker->await("partition_started");
  expect_replayed_once();
  EXPECT_EQ(site.database().value("SELECT runs FROM hapax.replays"), committed ? "1" : "2");
  EXPECT_EQ(worker->count("replay"), committed ? 0U : 1U);
  expect_leaves(*worker);
}

INSTANTIATE_TEST_SUITE_P(Points, ReplayCrash,
                         testing::Values("replay_claimed", "replay_handled", "replay_committed"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace hapax::support
