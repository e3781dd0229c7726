// A halt is no crash: a partition that is halted is not suspected of killing its workers.
#include <gtest/gtest.h>

#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

TEST(Halted, IsNotTakenByRestartsAndNotCautiousOnceItIsResumed) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  producer.send(site.payment(0, {{"do", "commit"}}));
  site.pay(producer, 1, 3);
  const auto worker = site.worker("w");
  worker->await("halted", {{"reason", "handler_ended_transaction"}});
  worker->await_metric("hapax_partition_state{partition=\"0\",state=\"halted\",topic=\"" +
                       site.topic() + "\"} 1");
  const std::string metrics = worker->get("/metrics").body;
  EXPECT_EQ(metrics.find("hapax_partition_lag{"), std::string::npos) << "one that stands still";
  for (int life = 0; life < 2; ++life) {
    expect_leaves(*worker);
    worker->start_again();
    worker->await("halted", {{"reason", "handler_ended_transaction"}});
  }
  EXPECT_EQ(site.database().value("SELECT started_runs FROM hapax.checkpoints"), "1");
  const Said said = hapax({"resume", site.topic(), "--decision", "skip", "--why", "looked at it",
                           "--yes", "--url", site.database().owner().url},
                          worker->config());
  EXPECT_EQ(said.code, 0) << said.text;
  worker->await("partition_started");
  site.await_booked(3);
  EXPECT_EQ(worker->count("cautious"), 0U);
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
