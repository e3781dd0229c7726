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
TEST(KafkaOutage, ALogThatLostItsEndAndGrewAgainHalts) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer before(site.bootstrap());
  site.pay(before, 0, 20);
  const auto worker = site.worker("w");
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

  const auto run = [&](std::vector<std::string> arguments) {
    for (const std::string& more :
         {std::string("--why"), std::string("disk lost"), std::string("--yes"),
          std::string("--url"), site.database().owner().url})
      arguments.push_back(more);
    return hapax(std::move(arguments), worker->config());
  };
  const Said decided = run({"resume", site.topic() + "/0", "--decision", "recreated"});
  EXPECT_EQ(decided.code, 0) << decided.text;
  worker->start_again();
  site.await_booked(60);
  site.expect_exact(60);
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
