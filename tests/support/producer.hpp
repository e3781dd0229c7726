// Puts records into Kafka (or the mock cluster) for the tests, exactly as a test words them.
#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hapax::support {

struct Outgoing {
  std::string topic;
  std::optional<std::string> payload = {};  // nothing: a tombstone
  std::optional<std::string> key = {};
  std::vector<std::pair<std::string, std::optional<std::string>>> headers = {};
  std::int32_t partition = -1;    // -1: by the key's hash, at random without a key
  std::int64_t timestamp_ms = 0;  // 0: now
};

struct Placed {
  std::int32_t partition = -1;
  std::int64_t offset = -1;
};

// Throws from every function: std::runtime_error in Kafka's words.
// Thread safety: none; one thread at a time.
class Producer {
 public:
  // `properties`: librdkafka's, such as {"compression.codec", "lz4"}. With a "transactional.id"
  // every record belongs between begin() and commit() or abort(). Blocks then: at most 30 s.
  explicit Producer(const std::string& bootstrap,
                    const std::map<std::string, std::string>& properties = {});
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  // Hands it to librdkafka. Blocks: while its queue is full.
  void produce(const Outgoing& record);

  // Throws also if Kafka has refused a record since the last flush. Blocks: at most `timeout`.
  void flush(std::chrono::milliseconds timeout = std::chrono::seconds(30));

  // produce() and flush(). Returns the record's partition and offset.
  Placed send(const Outgoing& record);

  void begin();
  void commit();
  void abort();

 private:
  struct Deliveries {
    std::string failure;  // the first one
    Placed last;
  };
  struct Destroy {
    void operator()(rd_kafka_t* client) const;
  };
  static void on_delivery(rd_kafka_t* client, const rd_kafka_message_t* message, void* opaque);

  Deliveries deliveries_;  // before client_: its destructor still delivers
  std::unique_ptr<rd_kafka_t, Destroy> client_;
};

}  // namespace hapax::support
