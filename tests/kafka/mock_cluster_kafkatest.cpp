#include "kafka/mock_cluster.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "kafka/sample_records.hpp"
#include "support/kafka_admin.hpp"

namespace hapax::kafka {
namespace {

using namespace hapax::support;

TEST(MockCluster, KeepsRecordsByteForByte) {
  MockCluster cluster;
  cluster.create_topic("t", 2);
  Producer producer(cluster.bootstrap(), {{"compression.codec", "lz4"}});
  const auto sent = sample_records("t");
  for (const support::Outgoing& record : sent) producer.produce(record);
  producer.flush();
  expect_equal(read_records(cluster.bootstrap(), "t", 0), sent);
  EXPECT_TRUE(read_records(cluster.bootstrap(), "t", 1).empty());
}

TEST(MockCluster, KeepsOffsetsOfGroups) {
  MockCluster cluster;
  cluster.create_topic("t", 1);
  Producer producer(cluster.bootstrap());
  EXPECT_EQ(producer.send({"t", "a", {}, {}, 0}).offset, 0);
  EXPECT_EQ(producer.send({"t", "b", {}, {}, 0}).offset, 1);
  EXPECT_EQ(end_offset(cluster.bootstrap(), "t", 0), 2);
  EXPECT_EQ(committed(cluster.bootstrap(), "g", "t", 0), std::nullopt);
  reset_offset(cluster.bootstrap(), "g", "t", 0, {1, "why"});
  EXPECT_EQ(committed(cluster.bootstrap(), "g", "t", 0), (GroupOffset{1, "why"}));
}

TEST(MockCluster, RefusesATopicTwice) {
  MockCluster cluster;
  cluster.create_topic("t", 1);
  EXPECT_THROW(cluster.create_topic("t", 1), std::runtime_error);
}

TEST(MockCluster, ClustersAreSeparate) {
  MockCluster one;
  MockCluster other;
  EXPECT_NE(one.bootstrap(), other.bootstrap());
  one.create_topic("t", 1);
  Producer(one.bootstrap()).send({"t", "a", {}, {}, 0});
  other.create_topic("t", 1);
  EXPECT_TRUE(read_records(other.bootstrap(), "t", 0).empty());
}

}  // namespace
}  // namespace hapax::kafka
