// The records of one topic on their way to Kafka, with a producer of their own. A topic without a
// leader, or one with a record that Kafka refuses, holds up no other topic.
//
// A refusal may be about a batch, not about the record that it names. So the stream then sends
// fewer records at a time, half as many at each refusal, until one is alone.
//
// Thread safety: none; it belongs to the relay's thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kafka/stream_producer.hpp"
#include "outbox/cluster.hpp"
#include "outbox/endings.hpp"
#include "outbox/stream.hpp"

namespace hapax::outbox {

class TopicStream final : public Stream {
 public:
  using MakeProducer = std::function<std::unique_ptr<kafka::StreamProducer>()>;

  // `endings` and `cluster` outlive it.
  TopicStream(std::string topic, std::string group, MakeProducer make_producer, Endings& endings,
              Cluster& cluster, bool letters_wait = false)
      : Stream(std::move(topic), std::move(group), letters_wait),
        make_producer_(std::move(make_producer)),
        endings_(endings),
        cluster_(cluster) {}

  bool is_in_flight() const override { return !sent_.empty(); }
  News turn(bool may_send, std::chrono::milliseconds timeout) override;
  void let_go() override;

 private:
  bool has_producer();
  bool reaches_its_cluster();
  bool is_unreadable_next() const;
  void feed();
  void conclude(News& news);

  const MakeProducer make_producer_;
  Endings& endings_;
  Cluster& cluster_;
  std::unique_ptr<kafka::StreamProducer> producer_;
  std::map<std::int64_t, store::OutboxRow> sent_;  // sent and not acknowledged
  std::optional<kafka::StreamAnswer> refusal_;     // the first one of this producer
  std::size_t refused_ = 0;                        // records in refused batches
  std::string failure_;                            // of a record that Kafka may have got
  std::size_t at_a_time_ = 0;                      // 0: as many as there are
  bool reached_another_ = false;                   // cluster, by this producer
  Clock::time_point stopped_at_{};
};

}  // namespace hapax::outbox
