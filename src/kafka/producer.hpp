// Puts records into Kafka, for the demo and the bench. The relay has StreamProducer and
// TransactionalProducer.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "kafka/consumer.hpp"

struct rd_kafka_s;
struct rd_kafka_message_s;

namespace hapax::kafka {

// Those of a consumer's properties that name the brokers' addresses and our identity.
Properties connecting(const Properties& properties);

// The id of the cluster that `client` has reached; "" if no broker has told it within `timeout`.
std::string cluster_id(rd_kafka_s* client, std::chrono::milliseconds timeout);

struct Outgoing {
  std::string topic;
  std::int32_t partition = 0;
  std::string key;
  std::string header_name;
  std::string header_value;
  std::string payload;
};

// Thread safety: none; one thread at a time.
class Producer {
 public:
  // `properties`: a consumer's; only the properties of the brokers' addresses and of our identity
  // are taken.
  // `linger`: how long a record may wait for others. Compresses with lz4.
  // Throws: std::runtime_error.
  explicit Producer(const Properties& properties,
                    std::chrono::milliseconds linger = std::chrono::milliseconds(20));
  // What is not delivered by then is dropped.
  ~Producer();
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  // Hands it to librdkafka, which delivers in the background. Throws: std::runtime_error.
  // Blocks: while librdkafka's queue is full.
  void produce(const Outgoing& record);

  // Returns when Kafka has everything. Throws: std::runtime_error if it has not, in time or for
  // any record since the last flush. Blocks: at most `timeout`.
  void flush(std::chrono::milliseconds timeout);

 private:
  static void on_delivery(rd_kafka_s* client, const rd_kafka_message_s* message, void* opaque);

  std::string failure_;  // the first one since the last flush; before client_, which writes it
  rd_kafka_s* client_ = nullptr;
};

}  // namespace hapax::kafka
