// What the tests of the poll thread's parts stand on: partitions, a clock that they turn, a
// consumer and a keeper in memory.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "fake_consumer.hpp"
#include "fake_keeper.hpp"
#include "kafka/record.hpp"
#include "observe/metrics.hpp"
#include "worker/dispatcher.hpp"
#include "worker/partitions.hpp"

namespace hapax::worker {

struct PollGround : testing::Test {
  using milliseconds = std::chrono::milliseconds;

  static flow::Route route_of(const std::string& topic) {
    flow::Route route;
    route.topic = topic;
    return route;
  }

  static TopicPartition id(std::int32_t number) { return {"payments", number}; }

  // A partition whose start was agreed at `beginning.offset`, in the table.
  std::shared_ptr<Partition> start(std::int32_t number, Beginning beginning = {}) {
    auto partition = std::make_shared<Partition>(id(number), route, 0);
    partition->begin(std::move(beginning));
    partition->polling.started = true;
    partitions[partition->id()] = partition;
    return partition;
  }

  // Records of `payload` bytes at `offset`.
  static std::unique_ptr<kafka::Record> record(std::int32_t partition, std::int64_t offset,
                                               std::size_t payload = 0) {
    const std::string bytes(payload, 'x');
    return kafka::Record::copy(Message::Parts{
        .coordinates = {"payments", partition, offset}, .leader_epoch = 7, .payload = bytes});
  }

  static void settle(Partition& partition, std::int64_t offset, std::size_t bytes) {
    const Partition::Settled settled{offset, bytes};
    partition.settle(std::span(&settled, 1));
  }

  Now clock() {
    return [this] { return now; };
  }

  Clock::time_point now{std::chrono::hours(1)};
  flow::Route route = route_of("payments");
  observe::Metrics metrics{{}};
  Partitions partitions;
  Dispatcher dispatcher;
  FakeConsumer consumer;
  FakeKeeper keeper;
};

}  // namespace hapax::worker
