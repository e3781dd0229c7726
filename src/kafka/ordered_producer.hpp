// Puts records into Kafka one after the other: the next is sent when the one before is there, so
// their order stands after any failure. Idempotent: librdkafka's own retries add nothing twice.
//
// Slow on purpose, a round trip a record; for what is rare and must not be lost.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "kafka/consumer.hpp"

struct rd_kafka_message_s;

namespace hapax::kafka {

struct OrderedRecord {
  std::string topic;
  std::optional<std::string> key, payload;  // nothing: null
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
};

struct Delivery {
  enum class Result {
    delivered,
    too_large,  // for the topic; Kafka has nothing of it
    failed,     // or not known to be there: use a new producer, and send it again
  };
  Result result = Result::failed;
  std::string error;  // librdkafka's words for its code, if it was not delivered
  std::string
      connection;  // the last that went wrong with a connection meanwhile; differs each time
};

// Thread safety: none; one thread at a time.
class OrderedProducer {
 public:
  // `properties`: a consumer's; only the properties of the brokers' addresses and of our identity
  // are taken.
  // `timeout`: after it a record has failed. Throws: std::runtime_error.
  OrderedProducer(const Properties& properties, std::chrono::milliseconds timeout);
  // Blocks: briefly; nothing is waited for.
  ~OrderedProducer();
  OrderedProducer(const OrderedProducer&) = delete;
  OrderedProducer& operator=(const OrderedProducer&) = delete;

  // The partition comes of the key as the Java client's does.
  // Blocks: about `timeout`, or about a second once a stop is requested.
  Delivery deliver(const OrderedRecord& record, const std::stop_token& stop);

 private:
  static void on_delivery(rd_kafka_s* client, const rd_kafka_message_s* message, void* opaque);
  static void on_error(rd_kafka_s* client, int error, const char* reason, void* opaque);

  std::chrono::milliseconds timeout_;
  std::optional<Delivery> answer_;  // to the record on its way; before client_, which writes it
  std::string last_error_;          // the connection's, since the last delivery
  rd_kafka_s* client_ = nullptr;
};

}  // namespace hapax::kafka
