// A group that assigns hundreds of partitions again and again: librdkafka aborts the process if an
// assignment comes while it still stops the one before.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "kafka/consumer.hpp"
#include "support/kafka_admin.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kManyPartitions = 400;
constexpr int kRejoins = 12;  // each is two rebalances: one without the member, one with it
constexpr std::size_t kMostGrowth = 64UL << 20U;

class Member final : public kafka::Listener {
 public:
  Member(const std::string& bootstrap, const std::string& topic)
      : consumer_({{"bootstrap.servers", bootstrap},
                   {"group.id", topic},
                   {"session.timeout.ms", "6000"},
                   {"heartbeat.interval.ms", "50"},
                   {"fetch.wait.max.ms", "10"}},
                  *this) {
    consumer_.subscribe({topic});
  }

  void turn() {
    const kafka::Event event = consumer_.poll(milliseconds(5));
    if (std::holds_alternative<std::unique_ptr<kafka::Record>>(event)) ++received;
    if (!to_start_.empty()) consumer_.start(std::exchange(to_start_, {}));
  }
  void rejoin() { consumer_.rejoin(); }

  void on_assigned(const std::vector<kafka::TopicPartition>& partitions) override {
    ++assignments;
    held = partitions.size();
    received = 0;
    for (const kafka::TopicPartition& partition : partitions) to_start_.push_back({partition, 0});
  }
  void on_revoked(const std::vector<kafka::TopicPartition>&, bool) override {
    held = 0;
    to_start_.clear();
  }
  void on_committed(const std::vector<kafka::Commit>&, kafka::CommitResult,
                    const std::string&) override {}
  void on_client_error(const kafka::ClientError&) override {}

  int assignments = 0;
  std::size_t held = 0;
  std::size_t received = 0;  // since then

 private:
  std::vector<kafka::Position> to_start_;
  kafka::Consumer consumer_;
};

std::size_t resident_bytes() {
  std::size_t pages = 0;
  std::ifstream statm("/proc/self/statm");
  statm >> pages >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Both have their half, and read it.
void await_both(Member& one, Member& other) {
  const auto until = steady_clock::now() + std::chrono::seconds(60);
  const auto reads = [](const Member& member) {
    return member.held == kManyPartitions / 2 && member.received >= member.held;
  };
  while (!reads(one) || !reads(other)) {
    ASSERT_LT(steady_clock::now(), until) << one.held << " and " << other.held << " held";
    one.turn();
    other.turn();
  }
}

TEST(ManyRebalances, OfHundredsOfPartitionsCostNoProcessAndNoMemory) {
  HAPAX_NEEDS_KAFKA();
  const std::string bootstrap = shared_kafka().bootstrap();
  const std::string topic = "rebalanced";
  create_topic(bootstrap, topic, kManyPartitions);
  Producer producer(bootstrap);
  for (int n = 0; n < 4 * kManyPartitions; ++n)
    producer.produce(
        {.topic = topic, .payload = std::string(1000, 'x'), .partition = n % kManyPartitions});
  producer.flush();
  Member one(bootstrap, topic), other(bootstrap, topic);
  ASSERT_NO_FATAL_FAILURE(await_both(one, other));
  std::size_t before = 0;
  for (int n = 0; n < kRejoins; ++n) {
    if (n == kRejoins / 5) before = resident_bytes();
    Member& member = n % 2 == 0 ? one : other;
    const int assignments = member.assignments;
    member.rejoin();
    while (member.assignments == assignments) {
      one.turn();
      other.turn();
    }
    ASSERT_NO_FATAL_FAILURE(await_both(one, other)) << n;
  }
  EXPECT_GE(one.assignments + other.assignments, 2 * kRejoins);
  EXPECT_LT(resident_bytes(), before + kMostGrowth);
}

}  // namespace
}  // namespace hapax::support
