// A record that needs longer than a transaction may take, on librdkafka's mock broker.
#include "outbox/transacted_stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "kafka/mock_cluster.hpp"
#include "support/kafka_admin.hpp"

namespace hapax::outbox {
namespace {

using namespace std::chrono_literals;

struct SlowBroker {
  SlowBroker() { cluster.create_topic("receipts", 1); }

  TransactedStream stream(const Pace::Limits& limits,
                          const std::optional<store::OpenBatch>& open = {}) {
    const auto make = [this, bootstrap = cluster.bootstrap()](const std::stop_token& stop,
                                                              std::chrono::milliseconds timeout) {
      ++producers;
      longest = std::max<std::chrono::milliseconds>(longest, timeout);
      return std::make_unique<kafka::TransactionalProducer>(
          kafka::Properties{{"bootstrap.servers", bootstrap}},
          kafka::TransactionalProducer::Setup{
              .topic = "receipts", .id = "slow", .timeout = timeout, .stop = stop});
    };
    return TransactedStream({.topic = "receipts",
                             .group = "g",
                             .make_producer = make,
                             .endings = endings,
                             .cluster = group_cluster,
                             .open = open,
                             .limits = limits});
  }

  // As the relay does with PostgreSQL. The mock keeps no offsets of transactions. So the marker
  // stays the one before the batch, as if Kafka had aborted each. Returns when a batch was sent, or
  // with a halt.
  Stream::News drive(
      TransactedStream& stream, const std::function<void()>& opened = [] {}) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    std::int64_t number = 0;
    while (std::chrono::steady_clock::now() < deadline) {
      Stream::News news = stream.turn(true, 10ms);
      if (news.halt || news.sent > 0) return news;
      if (!stream.wants_batch()) continue;
      const store::NextBatch next = stream.propose();
      support::reset_offset(cluster.bootstrap(), "slow", "receipts", 0, {next.above, next.follows});
      stream.opened(++number);
      opened();
    }
    throw std::runtime_error("neither sent nor halted within a minute");
  }

  static std::vector<store::OutboxRow> record(std::size_t bytes) {
    store::OutboxRow row;
    row.id = 7;
    row.topic = "receipts";
    row.key = "k";
    row.payload = std::string(bytes, 'x');
    row.bytes = bytes + 1;
    return {row};
  }

  std::chrono::milliseconds longest{0};  // transaction that was wanted
  int producers = 0;
  Cluster group_cluster = [] {
    Cluster any;
    any.begin(std::nullopt);
    return any;
  }();
  Endings endings;
  kafka::MockCluster cluster;
};

constexpr std::size_t kLarge = 100'000, kSmall = 60'000;  // bytes

TEST(TransactedStream, ARecordThatNeedsLongGetsALongerTransaction) {
  SlowBroker broker;
  broker.cluster.delay(kafka::MockCluster::Request::produce, 4s, 100);
  auto stream = broker.stream({.shortest = 3s, .longest = 12s});
  stream.offer(SlowBroker::record(kLarge));
  const Stream::News news = broker.drive(stream);
  EXPECT_FALSE(news.halt) << news.halt->detail;
  EXPECT_EQ(news.sent, 1U);
  EXPECT_TRUE(stream.is_empty());
}

TEST(TransactedStream, ARecordThatNeedsLongerThanAnyTransactionHaltsItsKey) {
  SlowBroker broker;
  broker.cluster.delay(kafka::MockCluster::Request::produce, 30s, 100);
  auto stream = broker.stream({.shortest = 2s, .longest = 3s});
  stream.offer(SlowBroker::record(kLarge));
  const Stream::News news = broker.drive(stream);
  ASSERT_TRUE(news.halt);
  EXPECT_EQ(news.halt->row, 7);
  EXPECT_EQ(news.halt->reason, "record_refused");
  EXPECT_NE(news.halt->detail.find("not taken it within 3 s"), std::string::npos)
      << news.halt->detail;
  EXPECT_TRUE(stream.is_empty()) << "what waits is read again without that key";
}

// The leader answers all the time, also to questions: too few replicas are in sync.
TEST(TransactedStream, ASmallRecordWaitsWhileTooFewReplicasAreInSync) {
  SlowBroker broker;
  using Request = kafka::MockCluster::Request;
  broker.cluster.refuse_all(Request::produce, kafka::MockCluster::Error::not_enough_replicas);
  auto stream = broker.stream({.shortest = 2s, .longest = 3s});
  stream.offer(SlowBroker::record(kSmall));
  int batches = 0;
  const Stream::News news = broker.drive(stream, [&] {
    if (++batches == 4) broker.cluster.accept(Request::produce);
  });
  EXPECT_FALSE(news.halt) << news.halt->detail;
  EXPECT_EQ(news.sent, 1U);
  EXPECT_EQ(broker.longest, 2s) << "a longer transaction would hide more";
}

// Its metadata are old.
TEST(TransactedStream, GoesOnThoughABrokerDoesNotKnowTheTopicForAMoment) {
  SlowBroker broker;
  broker.cluster.set_topic_error("receipts", kafka::MockCluster::Error::unknown_topic);
  auto stream = broker.stream({});
  stream.offer(SlowBroker::record(kSmall));
  for (int turns = 0; turns < 100; ++turns) EXPECT_FALSE(stream.turn(true, 10ms).halt);
  broker.cluster.set_topic_error("receipts", kafka::MockCluster::Error::none);
  const Stream::News news = broker.drive(stream);
  EXPECT_FALSE(news.halt) << news.halt->detail;
  EXPECT_EQ(news.sent, 1U);
}

TEST(TransactedStream, HaltsATopicThatNoBrokerKnowsForTenSeconds) {
  SlowBroker broker;
  auto stream = broker.stream({});
  stream.offer(SlowBroker::record(kSmall));
  const auto first = std::chrono::steady_clock::now();
  broker.cluster.set_topic_error("receipts", kafka::MockCluster::Error::unknown_topic);
  const Stream::News news = broker.drive(stream);
  ASSERT_TRUE(news.halt);
  EXPECT_EQ(news.halt->reason, "topic_refused");
  EXPECT_NE(news.halt->detail.find("Kafka has no such topic"), std::string::npos);
  EXPECT_GE(std::chrono::steady_clock::now() - first, 10s);
}

// The batch was never sent. The topic goes while the relay waits for what may be open.
TEST(TransactedStream, ABatchThatWasNotSentIsNotCalledCommitted) {
  SlowBroker broker;
  using Error = kafka::MockCluster::Error;
  support::reset_offset(broker.cluster.bootstrap(), "slow", "receipts", 0, {6, "before"});
  broker.cluster.set_led("receipts", 0, false);
  auto stream = broker.stream({}, store::OpenBatch{7, "mine", "before", 3});
  Stream::News news;
  // The relay has looked for partitions by then, or does so in the next round.
  for (int round = 0; round < 4 && !news.halt; ++round) {
    for (const auto& [error, time] : {std::pair(Error::none, 3s), {Error::unknown_topic, 15s}}) {
      broker.cluster.set_topic_error("receipts", error);
      const auto until = std::chrono::steady_clock::now() + time;
      while (!news.halt && std::chrono::steady_clock::now() < until) news = stream.turn(true, 10ms);
    }
  }
  ASSERT_TRUE(news.halt);
  EXPECT_EQ(news.halt->reason, "records_lost");
  EXPECT_EQ(news.halt->detail,
            "Kafka has lost records while a batch waited for its end: Kafka has no such topic (any "
            "more) (batch 7 with 3 records)");
}

// The broker's transaction.max.timeout.ms.
TEST(TransactedStream, ATransactionThatKafkaDoesNotAllowIsNotTriedAgain) {
  SlowBroker broker;
  broker.cluster.delay(kafka::MockCluster::Request::produce, 30s, 100);
  auto stream = broker.stream({.shortest = 2s, .longest = 60s});
  stream.offer(SlowBroker::record(kLarge));
  int batches = 0;
  const Stream::News news = broker.drive(stream, [&] {
    if (++batches == 1)
      broker.cluster.refuse(kafka::MockCluster::Request::init_producer,
                            kafka::MockCluster::Error::transaction_too_long);
  });
  ASSERT_TRUE(news.halt);
  EXPECT_EQ(news.halt->reason, "record_refused");
  EXPECT_NE(news.halt->detail.find("not taken it within 2 s"), std::string::npos)
      << news.halt->detail;
  EXPECT_EQ(batches, 2);
}

TEST(TransactedStream, AsksAgainIfItIsInDoubtAndReachesAnotherCluster) {
  SlowBroker broker;
  broker.group_cluster.begin(store::OutboxCluster{"another"});
  auto stream = broker.stream({}, store::OpenBatch{1, "token", "before", 1});
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  const auto turn = [&] {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    const Stream::News news = stream.turn(true, 10ms);
    EXPECT_FALSE(news.halt) << news.halt->detail;
    EXPECT_FALSE(news.settled);
  };
  while (broker.producers < 3) turn();
  EXPECT_FALSE(stream.takes_rows());
  support::reset_offset(broker.cluster.bootstrap(), "slow", "receipts", 0, {0, "before"});
  broker.group_cluster.begin(std::nullopt);
  std::optional<store::SettledBatch> settled;
  while (!settled && std::chrono::steady_clock::now() < deadline)
    settled = stream.turn(true, 10ms).settled;
  ASSERT_TRUE(settled);
  EXPECT_FALSE(settled->sent);
}

}  // namespace
}  // namespace hapax::outbox
