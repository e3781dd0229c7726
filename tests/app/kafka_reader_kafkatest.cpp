// What the commands ask of Kafka, and what they say when it does not answer.
#include "app/kafka_reader.hpp"

#include <gtest/gtest.h>

#include "kafka/mock_cluster.hpp"
#include "kafka/topic_settings.hpp"
#include "sandbox/free_port.hpp"

namespace hapax::app {
namespace {

using std::chrono::milliseconds;

config::Config config_for(const std::string& bootstrap) {
  config::Config config;
  config.kafka.properties = {{"bootstrap.servers", bootstrap}, {"group.id", "g"}};
  return config;
}

TEST(KafkaReader, SeesTheClusterWithoutJoiningTheGroup) {
  kafka::MockCluster cluster;
  cluster.create_topic("t", 3);
  KafkaReader reader(config_for(cluster.bootstrap()));
  EXPECT_NE(reader.reach(milliseconds(10'000)), "");
  EXPECT_EQ(reader.consumer().partition_count("t", milliseconds(10'000)), 3);
  const auto committed = reader.consumer().committed({{"t", 0}}, milliseconds(10'000));
  EXPECT_FALSE(committed.at({"t", 0}).offset);
}

TEST(KafkaReader, NamesTheCauseWhereNobodyListens) {
  KafkaReader reader(config_for("127.0.0.1:" + std::to_string(sandbox::free_port())));
  try {
    reader.reach(milliseconds(1'000));
    FAIL() << "reached nobody";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("Connection refused"), std::string::npos)
        << error.what();
  }
}

TEST(TopicSettings, CannotBeToldByTheMockCluster) {
  kafka::MockCluster cluster;
  cluster.create_topic("t", 1);
  EXPECT_THROW(kafka::read_topic_settings(config_for(cluster.bootstrap()).kafka.properties, "t",
                                          milliseconds(500)),
               std::runtime_error);
}

}  // namespace
}  // namespace hapax::app
