// The consumer against the mock broker.
#include "kafka/consumer.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace hapax::kafka
