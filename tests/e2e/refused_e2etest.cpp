// A partition that Kafka does not let us read is neither idle nor ready.
#include <gtest/gtest.h>

#include "support/kafka_admin.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

TEST(Refused, APartitionThatKafkaDoesNotLetUsReadIsNotReadyUntilItDoes) {
  HAPAX_NEEDS_KAFKA();
  KafkaServer kafka(
      {{"authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
       {"allow.everyone.if.no.acl.found", "true"},
       {"group.min.session.timeout.ms", "1000"}});
  Site site(1);
  create_topic(kafka.bootstrap(), site.topic(), 1);
  Producer producer(kafka.bootstrap());
  site.pay(producer, 0, 5);
  const auto worker = site.worker("w", {{"kafka", {{"bootstrap.servers", kafka.bootstrap()}}}});
  site.await_booked(5);
  worker->await_ready();

  deny_read(kafka.bootstrap(), site.topic());
  worker->await_not_ready("refused: ");
  worker->await_metric("hapax_partition_state{partition=\"0\",state=\"refused\",topic=\"" +
                       site.topic() + "\"} 1");
  allow_read(kafka.bootstrap(), site.topic());
  worker->await_ready();
  site.pay(producer, 5, 5);
  site.await_booked(10);
  expect_leaves(*worker);
  site.expect_exact(10);
}

}  // namespace
}  // namespace hapax::support
