// The records of one topic on their way to Kafka, with a producer of their own. A topic without a
// leader, or one with a record that Kafka refuses, holds up no other topic.
//
// A refusal may be about a batch, not about the record that it names. So the stream then sends
// fewer records at a time, half as many at each refusal, until one is alone.
//
// Thread safety: none; it belongs to the relay's thread.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kafka/stream_producer.hpp"
#include "store/worker/outbox.hpp"

namespace hapax::outbox {

class TopicStream {
 public:
  using MakeProducer = std::function<std::unique_ptr<kafka::StreamProducer>()>;

  TopicStream(std::string topic, std::string group, MakeProducer make_producer)
      : topic_(std::move(topic)),
        group_(std::move(group)),
        make_producer_(std::move(make_producer)) {}

  // Whether Kafka has acknowledged all that was offered, so that more may be read.
  bool is_empty() const { return waiting_.empty() && sent_.empty(); }
  // Whether an answer of Kafka's may still come.
  bool is_in_flight() const { return !sent_.empty(); }

  // Precondition: is_empty(). `rows` are in the order of ids.
  void offer(std::vector<store::OutboxRow> rows);

  struct News {
    std::vector<std::int64_t> delivered;
    // A record cannot be sent, or the topic not written. All that was not delivered is forgotten,
    // and must be read again.
    std::optional<store::OutboxHalt> halt;
  };
  // Sends and collects answers. `may_send`: false takes back what librdkafka has not sent yet.
  // Throws: nothing. Blocks: at most `timeout`.
  News turn(bool may_send, std::chrono::milliseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;

  bool has_producer();
  bool is_unreadable_next() const;
  void feed();
  void conclude(News& news);
  void back_off(const std::string& why);
  void delayed(const std::string& why);
  void goes_on();

  const std::string topic_, group_;
  const MakeProducer make_producer_;
  std::unique_ptr<kafka::StreamProducer> producer_;
  std::deque<store::OutboxRow> waiting_;
  std::map<std::int64_t, store::OutboxRow> sent_;  // and not acknowledged
  std::size_t at_a_time_ = 0;                      // 0: as many as there are
  std::optional<kafka::StreamAnswer> refusal_;     // the first one of this producer
  std::size_t refused_ = 0;                        // records in refused batches
  std::string failure_;                            // of a record that Kafka may have got
  Clock::time_point stopped_at_{};
  Clock::time_point not_before_{};
  Clock::time_point moved_at_ = Clock::now();
  std::string said_;  // why it is delayed
};

}  // namespace hapax::outbox
