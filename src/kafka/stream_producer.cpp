#include "kafka/stream_producer.hpp"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "kafka/conf.hpp"
#include "kafka/produce.hpp"
#include "kafka/producer.hpp"

namespace hapax::kafka {
namespace {

using StreamResult = StreamAnswer::Result;

StreamResult stream_result(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR: return StreamResult::delivered;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE: return StreamResult::too_large;
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION: return StreamResult::refused_record;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION: return StreamResult::no_topic;
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED: return StreamResult::refused_topic;
    case RD_KAFKA_RESP_ERR__PURGE_QUEUE:
    case RD_KAFKA_RESP_ERR__QUEUE_FULL:
    case RD_KAFKA_RESP_ERR__FATAL: return StreamResult::unsent;
    default: return StreamResult::unknown;
  }
}

std::string error_text(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION: return "Kafka has no such topic (any more)";
    default: return rd_kafka_err2str(error);
  }
}

constexpr std::int32_t kNotKnownYet = -1;

// An opaque is a pointer; ids are never 0.
void* opaque_of(std::int64_t id) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(id)); }
std::int64_t id_of(const void* opaque) { return reinterpret_cast<std::intptr_t>(opaque); }

}  // namespace

StreamAnswer stream_answer(std::int64_t id, int error) {
  const auto code = static_cast<rd_kafka_resp_err_t>(error);
  return {id, stream_result(code), error_text(code)};
}

StreamProducer::StreamProducer(const Properties& properties, const Limits& limits)
    : known_for_(limits.known_for) {
  Properties settings = {{"enable.idempotence", "true"},
                         // At the first refusal nothing behind it is sent.
                         {"enable.gapless.guarantee", "true"},
                         // What is in doubt after a fault is one batch.
                         {"max.in.flight.requests.per.connection", "1"},
                         {"message.timeout.ms", "0"},
                         // A topic that was deleted must not come back with other partitions.
                         {"allow.auto.create.topics", "false"},
                         // So long a new client waits for a topic that no broker knows.
                         {"topic.metadata.propagation.max.ms", "5000"},
                         // The topic decides how large a record may be.
                         {"message.max.bytes", "1000000000"},
                         {"batch.size", std::to_string(limits.batch_bytes)},
                         {"queue.buffering.max.messages", std::to_string(limits.most_records)},
                         {"queue.buffering.max.kbytes", "2097151"},
                         {"linger.ms", "2"}};
  settings.merge(connecting(properties));
  ConfHandle conf = make_conf(settings);
  rd_kafka_conf_set_opaque(conf.get(), this);
  rd_kafka_conf_set_log_cb(conf.get(), nullptr);
  rd_kafka_conf_set_dr_msg_cb(conf.get(), on_delivery);
  rd_kafka_conf_set_error_cb(conf.get(), on_error);
  rd_kafka_topic_conf_t* topics = rd_kafka_conf_get_default_topic_conf(conf.get());
  rd_kafka_topic_conf_set_partitioner_cb(topics, choose_partition);
  rd_kafka_topic_conf_set_opaque(topics, this);
  client_ = make_client(RD_KAFKA_PRODUCER, std::move(conf)).release();
}

StreamProducer::~StreamProducer() {
  rd_kafka_purge(client_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  rd_kafka_destroy(client_);
}

void StreamProducer::answer(std::int64_t id, int error) {
  answers_.push_back(stream_answer(id, error));
  if (answers_.back().result == StreamResult::delivered)
    last_error_.clear();
  else
    stopped_ = true;
}

void StreamProducer::on_delivery(rd_kafka_s*, const rd_kafka_message_s* message, void* opaque) {
  auto& self = *static_cast<StreamProducer*>(opaque);
  --self.in_hand_;
  const std::int64_t id = id_of(message->_private);
  self.alone_.erase(id);
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
    self.known_[message->partition] = std::chrono::steady_clock::now();
  self.answer(id, message->err);
}

void StreamProducer::on_error(rd_kafka_s* client, int error, const char* reason, void* opaque) {
  auto& self = *static_cast<StreamProducer*>(opaque);
  self.last_error_ = reason;
  if (error != RD_KAFKA_RESP_ERR__FATAL) return;
  char words[512];
  rd_kafka_fatal_error(client, words, sizeof words);
  self.last_error_ = words;
  self.stopped_ = true;
}

// As the Java client does. librdkafka spreads records without a key by itself.
std::int32_t StreamProducer::choose_partition(const rd_kafka_topic_s* topic, const void* key,
                                              std::size_t size, std::int32_t partitions,
                                              void* opaque, void*) {
  static_cast<StreamProducer*>(opaque)->partitions_ = partitions;
  return rd_kafka_msg_partitioner_murmur2_random(topic, key, size, partitions, nullptr, nullptr);
}

std::int32_t StreamProducer::partition_of(const std::string& key) const {
  if (partitions_ == 0) return kNotKnownYet;
  return rd_kafka_msg_partitioner_murmur2_random(nullptr, key.data(), key.size(), partitions_,
                                                 nullptr, nullptr);
}

bool StreamProducer::is_known(std::int32_t partition) const {
  const auto known = known_.find(partition);
  return known != known_.end() && std::chrono::steady_clock::now() - known->second < known_for_;
}

bool StreamProducer::takes(const OutgoingRecord& record) const {
  if (!record.key) return true;  // it has no order
  const std::int32_t partition = partition_of(*record.key);
  return is_known(partition) || std::ranges::none_of(alone_, [&](const auto& first) {
           return first.second == partition || first.second == kNotKnownYet;
         });
}

void StreamProducer::send(const OutgoingRecord& record, std::int64_t id) {
  if (stopped_) {
    answers_.push_back({id, StreamResult::unsent, "stopped"});
    return;
  }
  const auto partition = record.key ? partition_of(*record.key) : kNotKnownYet;
  try {
    if (const ErrorHandle error = produce(client_, record, opaque_of(id))) {
      answer(id, rd_kafka_error_code(error.get()));
      return;
    }
    ++in_hand_;
    if (record.key && !is_known(partition)) alone_.emplace(id, partition);
  } catch (const std::runtime_error&) {  // a header that no Kafka takes
    answer(id, RD_KAFKA_RESP_ERR_INVALID_RECORD);
  }
}

std::vector<StreamAnswer> StreamProducer::poll(std::chrono::milliseconds timeout) {
  if (stopped_) stop();  // what librdkafka has put back to try it again
  rd_kafka_poll(client_, answers_.empty() ? static_cast<int>(timeout.count()) : 0);
  return std::exchange(answers_, {});
}

std::string StreamProducer::cluster_id() const {
  return kafka::cluster_id(client_, std::chrono::milliseconds(0));
}

void StreamProducer::stop() {
  stopped_ = true;
  rd_kafka_purge(client_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

void StreamProducer::abandon() {
  stopped_ = true;
  rd_kafka_purge(
      client_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

}  // namespace hapax::kafka
