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

  // `waits_for_topic`: a topic that is missing or may not be written does not halt, but is tried
  // again each second.
  TopicStream(std::string topic, std::string group, MakeProducer make_producer,
              bool waits_for_topic = false)
      : topic_(std::move(topic)),
        group_(std::move(group)),
        make_producer_(std::move(make_producer)),
        waits_for_topic_(waits_for_topic) {}

  // Whether Kafka has acknowledged all that was offered.
  bool is_empty() const { return in_hand_.empty(); }
  // What was offered and not acknowledged: ids, and the bytes of keys and payloads.
  const std::map<std::int64_t, std::size_t>& in_hand() const { return in_hand_; }
  std::size_t bytes_in_hand() const { return bytes_; }
  // Whether an answer of Kafka's may still come.
  bool is_in_flight() const { return !sent_.empty(); }

  // `rows` are in the order of ids, and none is in hand. If one has the key of a record in hand, it
  // has a higher id.
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
  bool shrink_next();
  void drop_waiting();
  void feed();
  void conclude(News& news);
  void back_off(const std::string& why);
  void delayed(const std::string& why);
  void goes_on();

  const std::string topic_, group_;
  const MakeProducer make_producer_;
  const bool waits_for_topic_;
  std::unique_ptr<kafka::StreamProducer> producer_;
  std::deque<store::OutboxRow> waiting_;
  std::map<std::int64_t, store::OutboxRow> sent_;  // and not acknowledged
  std::map<std::int64_t, std::size_t> in_hand_;    // waiting_ and sent_: their bytes
  std::size_t bytes_ = 0;                          // of all in hand
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
