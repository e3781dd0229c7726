// The consumer against the mock broker.
#include "kafka/consumer.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "kafka/mock_cluster.hpp"
#include "support/producer.hpp"

namespace hapax::kafka {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

class Assigned final : public Listener {
 public:
  void on_assigned(const std::vector<TopicPartition>& partitions) override {
    for (const TopicPartition& partition : partitions) positions.push_back({partition, 0});
  }
  void on_revoked(const std::vector<TopicPartition>&, bool) override {}
  void on_committed(const std::vector<Commit>&, CommitResult, const std::string&) override {}
  void on_client_error(const ClientError&) override {}

  std::vector<Position> positions;
};

// librdkafka before 2.2 looks once a second whether its full queue has room again, and this queue
// is full after each fetch.
TEST(Consumer, DoesNotWaitForLibrdkafkaToLookForRoomInItsQueue) {
  constexpr int kFetches = 80, kMessages = 25;  // one batch a fetch, 2.5 MB without its compression
  MockCluster cluster;
  cluster.create_topic("t", 1);
  support::Producer producer(cluster.bootstrap(), {{"message.max.bytes", "4000000"},
                                                   {"batch.size", "4000000"},
                                                   {"linger.ms", "1000"},
                                                   {"compression.codec", "lz4"}});
  for (int fetch = 0; fetch < kFetches; ++fetch) {
    for (int n = 0; n < kMessages; ++n)
      producer.produce({.topic = "t", .payload = std::string(100'000, 'x'), .partition = 0});
    producer.flush();
  }
  Assigned assigned;
  Consumer consumer({{"bootstrap.servers", cluster.bootstrap()},
                     {"group.id", "g"},
                     {"queued.max.messages.kbytes", "1"},
                     {"fetch.wait.max.ms", "20"}},
                    assigned);
  consumer.subscribe({"t"});
  const auto deadline = steady_clock::now() + seconds(20);
  int received = 0;
  while (received < kFetches * kMessages && steady_clock::now() < deadline) {
    const Event event = consumer.poll(seconds(1));
    if (std::holds_alternative<std::unique_ptr<Record>>(event)) ++received;
    if (!assigned.positions.empty()) consumer.start(std::exchange(assigned.positions, {}));
  }
  EXPECT_EQ(received, kFetches * kMessages) << "after twenty seconds";
  EXPECT_TRUE(consumer.close(seconds(5)));
}

constexpr int kEach = 30;  // messages a partition
// On a busy machine librdkafka may need longer. From its 2.1 on, that time is for all partitions.
constexpr seconds kMostToStart{1};

// Checks what a consumer gives of each partition: each offset once and in order, from the offset of
// its start on. While the partition is paused, it must give nothing.
class Checked {
 public:
  explicit Checked(int partitions, int brokers = 3) : cluster_(brokers), next_(partitions, -1) {
    cluster_.create_topic("t", partitions);
    support::Producer producer(cluster_.bootstrap());
    for (int partition = 0; partition < partitions; ++partition)
      for (int n = 0; n < kEach; ++n)
        producer.produce({.topic = "t", .payload = std::to_string(n), .partition = partition});
    producer.flush();
    consumer_ = std::make_unique<Consumer>(Properties{{"bootstrap.servers", cluster_.bootstrap()},
                                                      {"group.id", "g"},
                                                      {"session.timeout.ms", "3000"},
                                                      {"heartbeat.interval.ms", "400"},
                                                      {"fetch.wait.max.ms", "5"}},
                                           assigned_);
    consumer_->subscribe({"t"});
  }

  // All are assigned to us, nothing is fetched.
  void await_assigned() {
    assigned_.positions.clear();
    const auto deadline = steady_clock::now() + seconds(60);
    while (assigned_.positions.size() < next_.size()) {
      ASSERT_LT(steady_clock::now(), deadline);
      poll(std::chrono::milliseconds(100));
    }
    for (auto& next : next_) next = -1;
    fetched_.clear();
  }

  void poll(std::chrono::milliseconds timeout = {}) {
    const Event event = consumer_->poll(timeout);
    const auto* const record = std::get_if<std::unique_ptr<Record>>(&event);
    if (record == nullptr) return;
    const int partition = (*record)->message().partition();
    ASSERT_TRUE(fetched_.contains(partition)) << partition;
    ASSERT_EQ((*record)->message().offset(), next_[partition]++) << partition;
  }

  void start(const std::map<int, std::int64_t>& positions) {
    std::vector<Position> list;
    for (const auto& [partition, offset] : positions) {
      list.push_back({{"t", partition}, offset});
      next_[partition] = offset;
      fetched_.insert(partition);
    }
    const auto before = steady_clock::now();
    if (consumer_->start(list).empty()) return;
    ASSERT_GE(steady_clock::now() - before, kMostToStart);
    restart();
  }

  // As a worker does: again if it took so long that some partitions have no answer yet.
  void restart() {
    std::vector<Position> list;
    for (int partition = 0; partition < count(); ++partition)
      if (next_[partition] >= 0) {
        list.push_back({{"t", partition}, next_[partition]});
        fetched_.insert(partition);
      }
    const auto deadline = steady_clock::now() + seconds(60);
    for (;;) {
      const auto before = steady_clock::now();
      if (consumer_->restart(list).empty()) return;
      ASSERT_GE(steady_clock::now() - before, kMostToStart);
      ASSERT_LT(steady_clock::now(), deadline);
    }
  }

  void pause(int partition) {
    consumer_->pause({TopicPartition("t", partition)});
    fetched_.erase(partition);
  }

  void resume(int partition) {
    if (next_[partition] < 0) return;
    consumer_->resume({"t", partition});
    fetched_.insert(partition);
  }

  void expect_all_read() {
    const auto deadline = steady_clock::now() + seconds(60);
    while (std::ranges::any_of(next_, [](std::int64_t next) { return next < kEach; })) {
      if (steady_clock::now() >= deadline) FAIL() << testing::PrintToString(next_);
      ASSERT_NO_FATAL_FAILURE(poll(std::chrono::milliseconds(100)));
    }
  }

  int count() const { return static_cast<int>(next_.size()); }
  Consumer& consumer() { return *consumer_; }

 private:
  MockCluster cluster_;
  Assigned assigned_;
  std::vector<std::int64_t> next_;  // -1: not started
  std::set<int> fetched_;
  std::unique_ptr<Consumer> consumer_;
};

TEST(Consumer, GivesEachPartitionFromItsStartInSpiteOfAllAroundIt) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto draw = [&](int below) { return static_cast<int>(random() % below); };
  Checked checked(64);
  ASSERT_NO_FATAL_FAILURE(checked.await_assigned());
  for (int step = 0; step < 4000; ++step) {
    const int partition = draw(checked.count());
    switch (draw(40)) {
      case 0: checked.restart(); break;
      case 1:
      case 2:
        checked.start({{partition, draw(kEach)}, {draw(checked.count()), draw(kEach)}});
        break;
      case 3:
      case 4: checked.pause(partition); break;
      case 5:
      case 6:
      case 7: checked.resume(partition); break;
      default: checked.poll(std::chrono::milliseconds(draw(20) == 0 ? 2 : 0));
    }
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "step " << step;
  }
  std::map<int, std::int64_t> all;
  for (int partition = 0; partition < checked.count(); ++partition) all[partition] = draw(kEach);
  checked.start(all);
  checked.expect_all_read();
}

// An assignment that comes while librdkafka still stops the one before would abort the process.
TEST(Consumer, MayBeAssignedAgainAtOnceThoughPartitionsAreMany) {
  Checked checked(512);
  ASSERT_NO_FATAL_FAILURE(checked.await_assigned());
  std::map<int, std::int64_t> all;
  for (int partition = 0; partition < checked.count(); ++partition) all[partition] = 0;
  checked.start(all);
  for (int round = 0; round < 10; ++round) {
    checked.restart();
    checked.poll(std::chrono::milliseconds(round % 3));
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "round " << round;
  }
  checked.expect_all_read();
}

// If a partition has no leader, librdkafka leaves the question in the list, not an answer.
TEST(Consumer, TakesNoUnansweredQuestionForTheAnswer) {
  MockCluster cluster;
  cluster.create_topic("t", 2);
  support::Producer(cluster.bootstrap()).send({.topic = "t", .payload = "0", .partition = 0});
  cluster.set_led("t", 1, false);
  Assigned nobody;
  const Consumer consumer({{"bootstrap.servers", cluster.bootstrap()}, {"group.id", "g"}}, nobody);
  const TopicPartition led("t", 0), not_led("t", 1);
  const seconds timeout(10);
  EXPECT_EQ(consumer.ranges({led, not_led}, timeout).size(), 1U);
  EXPECT_EQ(consumer.ends({led, not_led}, timeout).size(), 1U);
  EXPECT_EQ(consumer.offsets_at({led, not_led}, 17, timeout).size(), 1U);
  EXPECT_EQ(consumer.range(led, timeout).high, 1);
  EXPECT_THROW((void)consumer.range(not_led, timeout), std::runtime_error);
  EXPECT_THROW((void)consumer.offset_at(not_led, 17, timeout), std::runtime_error);
}

// A command that looks at a topic just after it was made, or just after a leader has changed.
TEST(Consumer, AsksAgainIfTheBrokerDoesNotKnowYetThatItLeads) {
  MockCluster cluster;
  cluster.create_topic("t", 1);
  support::Producer(cluster.bootstrap()).send({.topic = "t", .payload = "0", .partition = 0});
  Assigned nobody;
  const Consumer consumer({{"bootstrap.servers", cluster.bootstrap()}, {"group.id", "g"}}, nobody);
  cluster.refuse(MockCluster::Request::list_offsets, MockCluster::Error::not_leader);
  EXPECT_EQ(consumer.range({"t", 0}, seconds(10)).high, 1);
  cluster.refuse_all(MockCluster::Request::list_offsets, MockCluster::Error::not_leader);
  EXPECT_THROW((void)consumer.range({"t", 0}, seconds(1)), std::runtime_error);
}

}  // namespace
}  // namespace hapax::kafka
