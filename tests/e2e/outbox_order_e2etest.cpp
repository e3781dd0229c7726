// The ways in which a record could pass an earlier one of its key, against a real Kafka. These are
// a refusal, a producer that Kafka does not know, and one that is given up. No PostgreSQL here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "outbox/topic_stream.hpp"
#include "support/kafka_admin.hpp"
#include "support/read_records.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;
using kafka::StreamProducer;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kLargest = 3000;
constexpr auto kSoon = 20ms;

// Two partitions. a and d have one each, with the Java client's partitioner.
struct OneStream {
  explicit OneStream(const std::string& name, std::string at = shared_kafka().bootstrap(),
                     StreamProducer::Limits wanted = {kLargest / 2})
      : bootstrap(std::move(at)), topic("order." + name), limits(wanted) {
    create_topic(bootstrap, topic, 2, {{"max.message.bytes", std::to_string(kLargest)}});
  }

  outbox::TopicStream make() const {
    return {topic, "g",
            [this] {
              return std::make_unique<StreamProducer>(
                  kafka::Properties{{"bootstrap.servers", bootstrap}}, limits);
            },
            endings, group_cluster};
  }

  // Ids from 1 on; `sizes`: of the payloads.
  std::vector<store::OutboxRow> rows(const std::vector<std::pair<std::string, int>>& sizes) {
    std::vector<store::OutboxRow> rows;
    for (const auto& [key, size] : sizes) {
      ++newest;
      rows.push_back({newest,
                      topic,
                      key,
                      std::to_string(newest) + std::string(size, '.'),
                      {},
                      "key",
                      "payments",
                      "1",
                      "0",
                      "0"});
    }
    return rows;
  }

  // Until all is acknowledged, or a record halts.
  std::optional<store::OutboxHalt> drain(outbox::TopicStream& stream) const {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!stream.is_empty()) {
      if (auto news = stream.turn(true, kSoon); news.halt) return news.halt;
      if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("not drained");
    }
    return {};
  }

  // The numbers of the records with this key, in the order of the log.
  std::vector<int> numbers(const std::string& key) const {
    std::vector<int> found;
    for (int partition = 0; partition < 2; ++partition)
      for (const Incoming& record : read_records(bootstrap, topic, partition))
        if (record.key == key) found.push_back(std::stoi(*record.payload));
    return found;
  }

  std::string bootstrap, topic;
  StreamProducer::Limits limits;
  std::int64_t newest = 0;
  mutable outbox::Endings endings;
  mutable outbox::Cluster group_cluster = [] {
    outbox::Cluster any;
    any.begin(std::nullopt);
    return any;
  }();
};

void expect_halt(const std::optional<store::OutboxHalt>& halt, std::int64_t row) {
  ASSERT_TRUE(halt);
  EXPECT_EQ(halt->reason, "record_refused");
  EXPECT_EQ(halt->row, row);
}

// A broker takes any sequence number from a producer that it does not know.
TEST(OutboxOrder, NothingPassesARefusedFirstRecord) {
  HAPAX_NEEDS_KAFKA();
  OneStream one("first");
  auto stream = one.make();
  stream.offer(one.rows({{"a", 5000}, {"a", 1}, {"a", 2000}, {"a", 1}}));
  expect_halt(one.drain(stream), 1);
  EXPECT_THAT(one.numbers("a"), IsEmpty());
}

// Each partition has producers of its own that it knows.
TEST(OutboxOrder, NothingPassesARefusedFirstRecordOfItsPartition) {
  HAPAX_NEEDS_KAFKA();
  OneStream one("partition");
  auto stream = one.make();
  stream.offer(one.rows({{"a", 1}}));
  EXPECT_FALSE(one.drain(stream));
  stream.offer(one.rows({{"d", 5000}, {"d", 1}, {"d", 2000}, {"a", 1}, {"d", 1}}));
  expect_halt(one.drain(stream), 2);
  EXPECT_THAT(one.numbers("d"), IsEmpty());
}

TEST(OutboxOrder, NothingPassesARefusedRecordInTheMiddle) {
  HAPAX_NEEDS_KAFKA();
  OneStream one("middle");
  auto stream = one.make();
  std::vector<std::pair<std::string, int>> sizes(300, {"a", 100});
  sizes[150].second = 5000;
  stream.offer(one.rows(sizes));
  expect_halt(one.drain(stream), 151);
  const auto numbers = one.numbers("a");
  ASSERT_EQ(numbers.size(), 150U);
  EXPECT_TRUE(std::ranges::is_sorted(numbers));
}

// As in a topic that got nothing for a day (producer.id.expiration.ms).
TEST(OutboxOrder, NothingPassesARefusedRecordOfAProducerThatKafkaHasForgotten) {
  HAPAX_NEEDS_KAFKA();
  const KafkaServer forgetful(std::map<std::string, std::string>{
      {"producer.id.expiration.ms", "1"}, {"producer.id.expiration.check.interval.ms", "1"}});
  OneStream one("forgotten", forgetful.bootstrap(), {kLargest / 2, 10'000, 0ms});
  auto stream = one.make();
  for (int round = 0; round < 5; ++round) {
    stream.offer(one.rows({{"a", 1}}));
    EXPECT_FALSE(one.drain(stream));
  }
  stream.offer(one.rows({{"a", 5000}, {"a", 1}, {"a", 2000}, {"a", 1}}));
  expect_halt(one.drain(stream), 6);
  EXPECT_THAT(one.numbers("a"), ElementsAre(1, 2, 3, 4, 5));
}

// What a frozen broker has in its sockets may come behind what the next producer sends. Then it
// repeats records, and brings none before its turn.
TEST(OutboxOrder, AProducerThatIsGivenUpBringsNoRecordBeforeItsTurn) {
  HAPAX_NEEDS_KAFKA();
  KafkaServer kafka;
  OneStream one("given_up", kafka.bootstrap());
  auto stream = one.make();
  stream.offer(one.rows({{"a", 1}, {"d", 1}}));
  EXPECT_FALSE(one.drain(stream));
  kafka.freeze();
  stream.offer(one.rows(std::vector<std::pair<std::string, int>>(100, {"a", 100})));
  stream.turn(true, kSoon);
  while (stream.is_in_flight()) stream.turn(false, kSoon);  // as without a lease
  stream.turn(true, kSoon);
  kafka.thaw();
  EXPECT_FALSE(one.drain(stream));
  stream.offer(one.rows({{"a", 1}}));
  EXPECT_FALSE(one.drain(stream));
  std::vector<int> firsts;
  std::set<int> seen;
  for (const int number : one.numbers("a"))
    if (seen.insert(number).second) firsts.push_back(number);
  EXPECT_EQ(firsts.size(), 102U);
  EXPECT_TRUE(std::ranges::is_sorted(firsts));
}

}  // namespace
}  // namespace hapax::support
