// A partition that Kafka does not let us read is neither idle nor ready.
#include <gtest/gtest.h>

#include "support/command.hpp"
#include "support/kafka_admin.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

const std::map<std::string, std::string> kAuthorizer = {
    {"authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
    {"allow.everyone.if.no.acl.found", "true"},
    {"group.min.session.timeout.ms", "1000"}};

TEST(Refused, APartitionThatKafkaDoesNotLetUsReadIsNotReadyUntilItDoes) {
  HAPAX_NEEDS_KAFKA();
  KafkaServer kafka(kAuthorizer);
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
  const Said refused = hapax({"status", "--json"}, worker->config());
  EXPECT_EQ(refused.code, 1) << refused.text;
  const auto status = nlohmann::json::parse(refused.text);
  EXPECT_EQ(status.at("refused_topics").at(0).at("topic"), site.topic());
  EXPECT_EQ(status.at("partitions").at(0).at("state"), "refused");
  EXPECT_EQ(status.at("partitions").at(0).at("end"), 5) << "who may not read may describe";
  allow_read(kafka.bootstrap(), site.topic());
  worker->await_ready();
  EXPECT_EQ(hapax({"status"}, worker->config()).code, 0);
  site.pay(producer, 5, 5);
  site.await_booked(10);

  // Then Kafka shows this user a group without members.
  deny_describe(kafka.bootstrap(), site.group());
  const Said forget = hapax({"offsets", "forget-group", site.group(), "--why", "renamed", "--yes",
                             "--url", site.database().owner().url},
                            worker->config());
  EXPECT_EQ(forget.code, 4) << forget.text;
  EXPECT_NE(forget.text.find("may this user describe it?"), std::string::npos) << forget.text;
  EXPECT_EQ(site.database().count("SELECT count(*) FROM hapax.checkpoints"), 1);
  expect_leaves(*worker);
  site.expect_exact(10);
}

// Its session runs out first; then the group does not take it any more.
TEST(Refused, AGroupThatKafkaDoesNotLetUsIntoIsNamedUntilItDoes) {
  HAPAX_NEEDS_KAFKA();
  KafkaServer kafka(kAuthorizer);
  Site site(1);
  create_topic(kafka.bootstrap(), site.topic(), 1);
  Producer producer(kafka.bootstrap());
  site.pay(producer, 0, 5);
  const auto worker = site.worker("w", {{"kafka", {{"bootstrap.servers", kafka.bootstrap()}}}});
  site.await_booked(5);
  worker->await_ready();

  deny_group(kafka.bootstrap(), site.group());
  worker->await("group_refused");
  worker->await_not_ready("Group authorization failed");
  allow_group(kafka.bootstrap(), site.group());
  worker->await_ready();
  site.pay(producer, 5, 5);
  site.await_booked(10);
  expect_leaves(*worker);
  site.expect_exact(10);
}

}  // namespace
}  // namespace hapax::support
