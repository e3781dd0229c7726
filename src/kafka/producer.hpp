// Puts records into Kafka, for the demo. A worker never produces.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

struct rd_kafka_s;
struct rd_kafka_message_s;

namespace hapax::kafka {

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
  // Compresses with lz4. Throws: std::runtime_error.
  explicit Producer(const std::string& bootstrap);
  // What is not delivered by then is dropped.
  ~Producer();
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  // Hands it to librdkafka, which delivers in the background. Throws: std::runtime_error.
  // Blocks: while librdkafka's queue is full.
  void produce(const Outgoing& record);

  // Returns when Kafka has everything. Throws: std::runtime_error where it has not, in time or for
  // any record since the last flush. Blocks: at most `timeout`.
  void flush(std::chrono::milliseconds timeout);

 private:
  static void on_delivery(rd_kafka_s* client, const rd_kafka_message_s* message, void* opaque);

  std::string failure_;  // the first one since the last flush; before client_, which writes it
  rd_kafka_s* client_ = nullptr;
};

}  // namespace hapax::kafka
