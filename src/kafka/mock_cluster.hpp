// librdkafka's built-in Kafka: a few brokers inside this process, for the demo and the fast tests.
//
// It is no Kafka: it has no transactions' control records, no isolation and no admin requests. It
// keeps only 5 MiB of *compressed* bytes for each partition, and drops older data in silence. So
// produce with lz4, to several partitions, or consume meanwhile. Other processes of this machine
// can use it, too.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

struct rd_kafka_s;
struct rd_kafka_mock_cluster_s;

namespace hapax::kafka {

// Thread safety: any thread.
class MockCluster {
 public:
  // Throws: std::runtime_error.
  explicit MockCluster(int brokers = 1);
  ~MockCluster();
  MockCluster(const MockCluster&) = delete;
  MockCluster& operator=(const MockCluster&) = delete;

  // For `bootstrap.servers`: host:port, separated by commas.
  std::string bootstrap() const;

  // Throws: std::runtime_error (it is there already).
  void create_topic(const std::string& name, int partitions);

  // The next request of this kind is answered with this error. Both by Kafka's numbers.
  enum class Request : std::int16_t {
    produce = 0,
    fetch = 1,
    list_offsets = 2,
    commit_offsets = 8,
    init_producer = 22
  };
  enum class Error {
    unknown = -1,
    none = 0,
    offset_out_of_range = 1,
    corrupt_message = 2,
    unknown_topic = 3,
    not_leader = 6,
    too_large = 10,
    not_enough_replicas = 19,
    not_allowed = 29,
    duplicate_sequence = 46,
    transaction_too_long = 50
  };
  void refuse(Request request, Error error);
  // The same with all, until accept().
  void refuse_all(Request request, Error error);
  void accept(Request request);
  // The next `times` requests of this kind to broker 1 are answered so late.
  void delay(Request request, std::chrono::milliseconds by, int times);

  // Brokers that are asked for metadata tell this of the topic, and none of its partitions.
  void set_topic_error(const std::string& topic, Error error);

  // Broker 1 and the others still name it in their metadata.
  void stop_broker(int broker);

  // Whether anybody leads the partition, for clients that ask from now on.
  void set_led(const std::string& topic, int partition, bool led);

 private:
  rd_kafka_s* client_;
  rd_kafka_mock_cluster_s* cluster_;
};

}  // namespace hapax::kafka
