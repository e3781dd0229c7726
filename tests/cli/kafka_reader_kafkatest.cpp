// What the commands ask Kafka, and their messages if Kafka does not answer.
#include "cli/kafka_reader.hpp"

#include <gtest/gtest.h>

#include "kafka/mock_cluster.hpp"
#include "kafka/topic_settings.hpp"
#include "sandbox/free_port.hpp"
#include "support/producer.hpp"

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

TEST(KafkaReader, ReadsARangeAgainAndAgainAndCommitsNothing) {
  kafka::MockCluster cluster;
  cluster.create_topic("t", 1);
  support::Producer producer(cluster.bootstrap());
  for (int i = 0; i < 5; ++i)
    producer.send({.topic = "t", .payload = std::to_string(i), .partition = 0});
  KafkaReader reader(config_for(cluster.bootstrap()));
  std::string read;
  const auto from_to = [&](std::int64_t from, std::int64_t to) {
    read.clear();
    return reader
        .read({{{"t", 0}, from, to}}, [&](auto record) { read += *record->message().payload(); })
        .at(0);
  };
  EXPECT_EQ(from_to(1, 4), 4);
  EXPECT_EQ(read, "123");
  EXPECT_EQ(from_to(0, 1), 1);
  EXPECT_EQ(read, "0");
  EXPECT_EQ(from_to(3, 9), 5) << "the log ends there";
  EXPECT_EQ(read, "34");
  EXPECT_EQ(from_to(2, 2), 2);
  EXPECT_EQ(read, "");
  EXPECT_FALSE(reader.consumer().committed({{"t", 0}}, milliseconds(10'000)).at({"t", 0}).offset);
}

TEST(KafkaReader, ReadsOfEachPartitionWhatIsAskedAndNoMore) {
  constexpr int kPartitions = 60, kRecords = 20;
  kafka::MockCluster cluster;
  cluster.create_topic("t", kPartitions);
  support::Producer producer(cluster.bootstrap());
  for (int i = 0; i < kPartitions * kRecords; ++i)
    producer.send(
        {.topic = "t", .payload = std::to_string(i / kPartitions), .partition = i % kPartitions});
  KafkaReader reader(config_for(cluster.bootstrap()));
  for (int again = 0; again < 2; ++again) {  // what ended the reading of a partition does not last
    std::vector<KafkaReader::Stretch> stretches;
    for (std::int32_t one = 0; one < kPartitions; ++one)
      stretches.push_back({{"t", one}, one % 10, 15 + one % 10});  // some end behind the log
    std::map<std::int32_t, std::int64_t> next;
    const auto ends = reader.read(stretches, [&](auto record) {
      const Message& message = record->message();
      const std::int32_t one = message.partition();
      const auto place = next.try_emplace(one, one % 10).first;
      EXPECT_EQ(message.offset(), place->second++) << one;
      EXPECT_EQ(*message.payload(), std::to_string(message.offset()));
    });
    for (std::int32_t one = 0; one < kPartitions; ++one) {
      EXPECT_EQ(ends.at(static_cast<std::size_t>(one)), std::min(kRecords, 15 + one % 10)) << one;
      EXPECT_EQ(next[one], std::min(kRecords, 15 + one % 10)) << one;
    }
  }
}

TEST(KafkaReader, NamesTheCauseIfNoBrokerListens) {
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
