// Puts a stream of records of one topic into Kafka, fast. No record passes an earlier one of its
// key, because the producer stops at the first record that Kafka refuses.
//
// Idempotent, acks=all, and no record ever times out: one that timed out and was sent again would
// come behind its successors.
//
// A broker refuses what follows a refused record, because a sequence number is missing. But it
// takes any number from a producer that it does not know. So the first record of each partition
// goes alone.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kafka/consumer.hpp"
#include "kafka/outgoing_record.hpp"

struct rd_kafka_topic_s;

namespace hapax::kafka {

struct StreamAnswer {
  enum class Result : std::uint8_t {
    delivered,       // acknowledged by all replicas in sync
    refused_record,  // Kafka has not got it, because of it or of another one in its batch
    too_large,       // the same: the record, or its batch, is larger than the topic takes
    refused_topic,   // Kafka has not got it, because the right to write is missing
    no_topic,        // the same, because no topic of this name is known. A broker with old metadata
                     // answers so, too
    unsent,          // the producer has stopped: Kafka has not got it
    unknown,         // Kafka may have got it
  };
  std::int64_t id = 0;
  Result result = Result::unknown;
  std::string error;  // librdkafka's word for its code
};

// What librdkafka's code (rd_kafka_resp_err_t) for a record means. Pure.
StreamAnswer stream_answer(std::int64_t id, int error);

// Whether all records of the topic would be answered so.
inline bool is_about_topic(StreamAnswer::Result result) {
  return result == StreamAnswer::Result::refused_topic || result == StreamAnswer::Result::no_topic;
}

// Thread safety: none; one thread at a time.
class StreamProducer {
 public:
  struct Limits {
    std::size_t batch_bytes = 500'000;  // at most so much in a batch; below the topic's limit
    std::size_t most_records = 10'000;  // in hand
    // A partition knows the producer so long after its last answer. Kafka forgets a producer after
    // producer.id.expiration.ms, a day.
    std::chrono::milliseconds known_for = std::chrono::seconds(10);
  };

  // `properties`: a consumer's; only those about the connection are taken.
  // Throws: std::runtime_error.
  StreamProducer(const Properties& properties, const Limits& limits);
  // What is in hand is forgotten; Kafka may have got it. Blocks: as long as librdkafka asks for a
  // host's name, about ten seconds if no name server answers.
  ~StreamProducer();
  StreamProducer(const StreamProducer&) = delete;
  StreamProducer& operator=(const StreamProducer&) = delete;

  // Whether `record` may be sent now. If not, an answer must come first.
  bool takes(const OutgoingRecord& record) const;

  // Precondition: takes(record).
  // Hands a record over; its answer comes out of poll(). Throws: nothing. Blocks: no.
  void send(const OutgoingRecord& record, std::int64_t id);

  // The answers that have come. Blocks: until there is one, at most `timeout`.
  std::vector<StreamAnswer> poll(std::chrono::milliseconds timeout);

  // Of the cluster that it has reached; "" if no broker has told it yet. It follows a name that
  // leads to another cluster once librdkafka has connected again. Blocks: no.
  std::string cluster_id() const;

  // Whether it has stopped for good: make a new one, once in_hand() is 0.
  bool stopped() const { return stopped_; }

  // Takes back what was not sent, and stops. Their answers are `unsent`.
  void stop();
  // The same with what was sent and not answered: those answers are `unknown`.
  void abandon();

  std::size_t in_hand() const { return in_hand_; }

  // The last that went wrong with a connection; "" since the last answer.
  const std::string& last_error() const { return last_error_; }

 private:
  static void on_delivery(rd_kafka_s* client, const rd_kafka_message_s* message, void* opaque);
  static void on_error(rd_kafka_s* client, int error, const char* reason, void* opaque);
  static std::int32_t choose_partition(const rd_kafka_topic_s* topic, const void* key,
                                       std::size_t size, std::int32_t partitions, void* opaque,
                                       void* id);
  std::int32_t partition_of(const std::string& key) const;
  bool is_known(std::int32_t partition) const;
  void answer(std::int64_t id, int error);

  const std::chrono::milliseconds known_for_;
  std::atomic<std::int32_t> partitions_{0};  // librdkafka's threads write it; 0: not known yet
  std::map<std::int32_t, std::chrono::steady_clock::time_point> known_;  // its last answer
  std::map<std::int64_t, std::int32_t> alone_;  // first records on their way, and their partitions
  std::vector<StreamAnswer> answers_;           // before client_, which writes these
  std::string last_error_;
  std::size_t in_hand_ = 0;
  bool stopped_ = false;
  rd_kafka_s* client_ = nullptr;
};

}  // namespace hapax::kafka
