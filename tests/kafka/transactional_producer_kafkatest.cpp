// What a producer of transactions waits for, on librdkafka's mock broker.
#include "kafka/transactional_producer.hpp"

#include <gtest/gtest.h>

#include "kafka/mock_cluster.hpp"

namespace hapax::kafka {
namespace {

using namespace std::chrono_literals;

// A batch of an earlier relay may have records in that partition.
TEST(TransactionalProducer, WhatATopicHoldsIsVisibleOnlyWhenAllPartitionsHaveTold) {
  MockCluster cluster;
  cluster.create_topic("t", 2);
  cluster.set_led("t", 1, false);
  std::stop_source stop;
  TransactionalProducer producer({{"bootstrap.servers", cluster.bootstrap()}},
                                 {.topic = "t", .id = "one", .stop = stop.get_token()});
  producer.look();
  EXPECT_FALSE(producer.partition_of("a") && producer.partition_of("b") &&
               producer.partition_of("c") && producer.partition_of("d"))
      << "one partition has no leader";
  stop.request_stop();
  EXPECT_THROW(producer.await_all_visible([](const auto&) {}), TransactionError)
      << "it would wait, were it not stopped";
  cluster.set_led("t", 1, true);
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  for (bool visible = false; !visible;) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    try {
      producer.await_all_visible([](const auto&) {});
      visible = true;
    } catch (const TransactionError&) {
    }
  }
}

// Kafka is still making it, or the broker's metadata are old. A batch may be in any partition.
TEST(TransactionalProducer, ATopicWithoutPartitionsIsNotTakenForVisible) {
  MockCluster cluster;
  cluster.create_topic("t", 0);
  TransactionalProducer producer({{"bootstrap.servers", cluster.bootstrap()}},
                                 {.topic = "t", .id = "one"});
  producer.look();
  EXPECT_FALSE(producer.partition_of("a"));
  EXPECT_THROW(producer.await_all_visible([](const auto&) {}), TransactionError);
}

// Its first answer was lost, and the broker does not know its offset any more.
TEST(TransactionalProducer, ARecordWithoutAnOffsetIsVisibleOnlyWhenAllPartitionsHaveTold) {
  MockCluster cluster;
  cluster.create_topic("t", 2);
  std::stop_source stop;
  TransactionalProducer producer({{"bootstrap.servers", cluster.bootstrap()}},
                                 {.topic = "t", .id = "one", .stop = stop.get_token()});
  producer.init();
  producer.look();
  producer.begin();
  cluster.refuse(MockCluster::Request::produce, MockCluster::Error::duplicate_sequence);
  producer.send({"t", "k", "p", {}}, 0, 1);
  ASSERT_FALSE(producer.await_answers());
  producer.commit();
  cluster.set_led("t", 1, false);
  stop.request_stop();
  EXPECT_THROW(producer.await_visible([](const auto&) {}), TransactionError)
      << "it would wait for the other partition, were it not stopped";
}

}  // namespace
}  // namespace hapax::kafka
