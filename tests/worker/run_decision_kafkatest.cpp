// The decision `run`: what hapax knows by its dead letters does not run, although retention has
// forgotten the keys.
#include <gtest/gtest.h>

#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

class RunDecision : public testing::TestWithParam<int> {
 protected:
  void order(std::vector<std::string> words) {
    support::order(std::move(words), worker->config(), site.database().owner().url);
  }
  std::string booked(const std::string& id) {
    return site.database().value("SELECT count(*) FROM payments WHERE id = '" + id + "'");
  }

  Site site = Site::on_mock_cluster(1);
  std::unique_ptr<WorkerProcess> worker;
};

TEST_P(RunDecision, RunsNoMessageWhoseDeadLetterWasReplayedOrDiscarded) {
  Producer producer(site.bootstrap());
  // Payment 12 is the second of its account, and so is 13. Each comes too early, and is rejected.
  producer.send(site.payment(0));
  for (const int early : {12, 13})
    producer.send(site.payment(early, {{"do", "next"}, {"sequence", 1}}));
  for (const int first : {2, 3}) producer.send(site.payment(first));
  worker = site.worker("w", {{"worker", {{"lanes", 1}}}, {"route", {{"batch", GetParam()}}}});
  site.await_no_lag();
  order({"dead", "replay", "1"});
  order({"dead", "discard", "2"});
  const std::string ended = "SELECT string_agg(ended_as, ' ' ORDER BY id) FROM hapax.dead_letters";
  ASSERT_EQ(site.database().value(ended), "replayed discarded");

  site.database().run("DELETE FROM hapax.idempotency_keys");  // as retention does
  order({"offsets", "rewind", site.topic() + "/0", "--to", "0"});
  worker->await("halted", {{"reason", "unknown_below_highest"}});
  site.await("SELECT count(*) FROM hapax.halts", "1");  // the log line comes before the row
  order({"resume", site.topic() + "/0", "--decision", "run"});
  site.pay(producer, 20, 1);
  site.await("SELECT count(*) FROM payments WHERE id = 'p20'", "1");
  site.await_no_lag();
  EXPECT_EQ(booked("p0") + booked("p2") + booked("p3"), "222") << "an operator said so";
  EXPECT_EQ(booked("p12") + booked("p13"), "10");
  EXPECT_EQ(site.database().value(ended), "replayed discarded");
  expect_leaves(*worker);
}

INSTANTIATE_TEST_SUITE_P(OneByOneAndInBatches, RunDecision, testing::Values(1, 10));

}  // namespace
}  // namespace hapax::support
