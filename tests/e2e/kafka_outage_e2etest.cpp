// Kafka stands still, or restarts, under a running worker.
#include <gtest/gtest.h>

#include <utility>

#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kPayments = 3'000;

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
struct Running {
  Site site{2};
  std::unique_ptr<WorkerProcess> worker = site.worker("w");

  Running() {
    Producer producer(site.bootstrap());
    site.pay(producer, 0, kPayments);
    site.await_booked(kPayments / 10);
  }

  void expect_done() {
    site.await_no_lag();
    site.expect_exact(kPayments);
    expect_leaves(*worker);
  }
};

TEST(KafkaOutage, AFrozenBrokerIsWaitedFor) {
  HAPAX_NEEDS_KAFKA();
  Running running;
  KafkaAway frozen(&KafkaServer::freeze, &KafkaServer::thaw);
  running.worker->await("revoked", {{"lost", true}});  // its session is over
  frozen.end();
  running.expect_done();
}

TEST(KafkaOutage, AFrozenBrokerDoesNotKeepAWorkerFromLeaving) {
  HAPAX_NEEDS_KAFKA();
  Running running;
  KafkaAway frozen(&KafkaServer::freeze, &KafkaServer::thaw);
  expect_leaves(*running.worker);
  frozen.end();
  running.worker->start_again();
  running.expect_done();
}

TEST(KafkaOutage, ARestartIsWaitedOut) {
  HAPAX_NEEDS_KAFKA();
  Running running;
  KafkaAway stopped(&KafkaServer::stop, &KafkaServer::start);
  running.worker->await_not_ready("no broker is reachable");
  stopped.end();
  running.worker->await("kafka_up");
  running.expect_done();
}

}  // namespace
}  // namespace hapax::support
