#include "tools/demo/broker.hpp"

#include "kafka/consumer.hpp"
#include "kafka/mock_cluster.hpp"
#include "kafka/producer.hpp"
#include "tools/demo/ledger.hpp"

namespace hapax::app {
namespace {

using std::chrono::seconds;

constexpr seconds kDemoAnswer{10};
constexpr seconds kDemoDelivery{60};

}  // namespace

struct DemoBroker::Parts {
  // Asks about the group and never joins it, so nothing ever comes.
  struct Onlooker final : kafka::Listener {
    void on_assigned(const std::vector<kafka::TopicPartition>&) override {}
    void on_revoked(const std::vector<kafka::TopicPartition>&, bool) override {}
    void on_committed(const std::vector<kafka::Commit>&, kafka::CommitResult,
                      const std::string&) override {}
    void on_client_error(const kafka::ClientError&) override {}
  };

  kafka::MockCluster cluster;
  Onlooker listener;
  kafka::Consumer onlooker{{{"bootstrap.servers", cluster.bootstrap()}, {"group.id", kDemoGroup}},
                           listener};
};

DemoBroker::DemoBroker() : parts_(std::make_unique<Parts>()) {
  parts_->cluster.create_topic(kDemoTopic, kDemoPartitions);
}

DemoBroker::~DemoBroker() = default;

std::string DemoBroker::bootstrap() const { return parts_->cluster.bootstrap(); }

void DemoBroker::send(const std::vector<DemoMessage>& messages) {
  kafka::Producer producer({{"bootstrap.servers", bootstrap()}});
  for (const DemoMessage& message : messages)
    producer.produce({kDemoTopic, message.partition, message.account, "idempotency-key",
                      message.idempotency_key, message.payload});
  producer.flush(kDemoDelivery);
}

std::map<std::int32_t, std::int64_t> DemoBroker::ends() const {
  std::map<std::int32_t, std::int64_t> ends;
  for (std::int32_t partition = 0; partition < kDemoPartitions; ++partition)
    ends[partition] = parts_->onlooker.range({kDemoTopic, partition}, kDemoAnswer).high;
  return ends;
}

std::map<std::int32_t, std::int64_t> DemoBroker::committed() const {
  std::vector<kafka::TopicPartition> all;
  for (std::int32_t partition = 0; partition < kDemoPartitions; ++partition)
    all.emplace_back(kDemoTopic, partition);
  std::map<std::int32_t, std::int64_t> offsets;
  for (const auto& [id, committed] : parts_->onlooker.committed(all, kDemoAnswer))
    if (committed.offset) offsets[id.second] = *committed.offset;
  return offsets;
}

}  // namespace hapax::app
