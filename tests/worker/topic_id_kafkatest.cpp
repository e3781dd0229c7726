// Topic ids at a start, with a cluster that does not tell them: the mock has no controller.
#include <gtest/gtest.h>

#include "kafka/consumer.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

// Without the id, a worker cannot tell whether the topic was made again. A librdkafka that cannot
// ask for ids starts all the same.
TEST(TopicId, ThatIsNotToldKeepsAPartitionThatHadOneFromStarting) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  const auto worker = site.worker("w");
  site.await_no_lag();
  expect_leaves(*worker);
  site.database().run("UPDATE hapax.checkpoints SET topic_id = 'an id'");
  site.pay(producer, 20, 20);
  worker->start_again();
  if (kafka::can_tell_topic_ids()) {
    const std::string why = "Kafka does not tell the id of topic " + site.topic();
    worker->await("start_delayed", {{"error", why}});
    EXPECT_EQ(worker->count("partition_started"), 0U);
    EXPECT_EQ(site.database().value("SELECT count(*) FROM payments"), "20");
    site.database().run("UPDATE hapax.checkpoints SET topic_id = NULL");
  }
  site.await_no_lag();
  site.expect_exact(40);
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
