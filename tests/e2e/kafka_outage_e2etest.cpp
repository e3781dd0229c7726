// Kafka stands still, or restarts, under a running worker.
#include <gtest/gtest.h>

#include <utility>

#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kOutagePayments = 3'000;

// Does one thing to Kafka now and its opposite at end(), or at the end of the test.
class KafkaAway {
 public:
  using Action = void (KafkaServer::*)();
  KafkaAway(Action now, Action later) : end_(later) { (shared_kafka().*now)(); }
  ~KafkaAway() { end(); }
  KafkaAway(const KafkaAway&) = delete;
  KafkaAway& operator=(const KafkaAway&) = delete;

  void end() {
    if (const Action action = std::exchange(end_, nullptr)) (shared_kafka().*action)();
  }

 private:
  Action end_;
};

// A worker with a backlog before it, some of it done.
struct WorkerUnderWay {
  Site site{2};
  std::unique_ptr<WorkerProcess> worker = site.worker("w");

  WorkerUnderWay() {
    Producer producer(site.bootstrap());
    site.pay(producer, 0, kOutagePayments);
    site.await_booked(kOutagePayments / 10);
  }

  void expect_done() {
    site.await_no_lag();
    site.expect_exact(kOutagePayments);
    expect_leaves(*worker);
  }
};

TEST(KafkaOutage, AFrozenBrokerIsWaitedFor) {
  HAPAX_NEEDS_KAFKA();
  WorkerUnderWay running;
  KafkaAway frozen(&KafkaServer::freeze, &KafkaServer::thaw);
  running.worker->await("revoked", {{"lost", true}});  // its session is over
  frozen.end();
  running.expect_done();
}

TEST(KafkaOutage, AFrozenBrokerDoesNotKeepAWorkerFromLeaving) {
  HAPAX_NEEDS_KAFKA();
  WorkerUnderWay running;
  KafkaAway frozen(&KafkaServer::freeze, &KafkaServer::thaw);
  expect_leaves(*running.worker);
  frozen.end();
  running.worker->start_again();
  running.expect_done();
}

TEST(KafkaOutage, ARestartIsWaitedOut) {
  HAPAX_NEEDS_KAFKA();
  WorkerUnderWay running;
  KafkaAway stopped(&KafkaServer::stop, &KafkaServer::start);
  running.worker->await_not_ready("no broker is reachable");
  stopped.end();
  running.worker->await("kafka_up");
  running.expect_done();
}

// As after an unclean election: the end of the log is gone, and producers wrote more before the
// worker asked. If all was settled, it would go on at its offset, and leave out the new records
// below.
struct LostLog {
  explicit LostLog(const nlohmann::json& patch) : worker(site.worker("w", patch)) {
    Producer before(site.bootstrap());
    site.pay(before, 0, 20);
    site.await_booked(20);
    site.await_no_lag();
    {
      KafkaAway stopped(&KafkaServer::stop, &KafkaServer::start);
      shared_kafka().lose_log(site.topic(), 0);
    }
    worker->await("start_doubted", {{"partition", 0}});
    Producer after(site.bootstrap());
    site.pay(after, 20, 40);
    worker->await("halted", {{"partition", 0}, {"reason", "offset_above_end"}, {"offset", 19}});
    EXPECT_EQ(site.database().value("SELECT count(*) FROM payments"), "20");
    expect_leaves(*worker);
  }

  // The worker then goes on.
  void decide(const char* decision) {
    const Said decided = hapax({"resume", site.topic() + "/0", "--decision", decision, "--why",
                                "disk lost", "--yes", "--url", site.database().owner().url},
                               worker->config());
    EXPECT_EQ(decided.code, 0) << decided.text;
    worker->start_again();
  }

  Site site{1};
  std::unique_ptr<WorkerProcess> worker;
};

TEST(KafkaOutage, ALogThatLostItsEndAndGrewAgainHalts) {
  HAPAX_NEEDS_KAFKA();
  LostLog lost(nlohmann::json::object());
  lost.decide("recreated");
  lost.site.await_booked(60);
  lost.site.expect_exact(60);
  expect_leaves(*lost.worker);
}

// By position nothing tells the twenty that were written again from those that took effect.
TEST(KafkaOutage, WhatIsLeftOutOfSuchALogIsToldWithTheDecisionByPosition) {
  HAPAX_NEEDS_KAFKA();
  LostLog lost(nlohmann::json{{"route", {{"key", "position"}}}});
  lost.decide("same_topic");
  lost.site.await_booked(40);
  lost.site.await_no_lag();
  expect_leaves(*lost.worker);
  const Said audit = hapax({"audit", "--topic", lost.site.topic()}, lost.worker->config());
  EXPECT_NE(audit.text.find("decided same_topic"), std::string::npos) << audit.text;
  const Said story = hapax({"explain", lost.site.topic() + "/0/3"}, lost.worker->config());
  EXPECT_NE(story.text.find("decided same_topic"), std::string::npos) << story.text;
}

}  // namespace
}  // namespace hapax::support
