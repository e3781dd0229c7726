#include "support/read_records.hpp"

#include <memory>
#include <stdexcept>

#include "support/client.hpp"

namespace hapax::support {
namespace {

using Client = std::unique_ptr<rd_kafka_t, kafka::Destroyer<rd_kafka_destroy>>;

std::optional<std::string> bytes(const void* data, std::size_t size) {
  if (data == nullptr) return std::nullopt;
  return std::string(static_cast<const char*>(data), size);
}

Incoming copy_of(rd_kafka_message_t& message) {
  Incoming record{message.offset,
                  bytes(message.payload, message.len),
                  bytes(message.key, message.key_len),
                  {},
                  rd_kafka_message_timestamp(&message, nullptr)};
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return record;
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i)
    record.headers.emplace_back(name, bytes(value, size));
  return record;
}

}  // namespace

std::vector<Incoming> read_records(const std::string& bootstrap, const std::string& topic,
                                   std::int32_t partition, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const Client client(
      make_client(RD_KAFKA_CONSUMER, configuration(bootstrap, {{"group.id", "reader"},
                                                               {"enable.auto.commit", "false"},
                                                               {"enable.partition.eof", "true"},
                                                               {"fetch.wait.max.ms", "20"}})));
  const kafka::ListHandle start(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(start.get(), topic.c_str(), partition)->offset =
      RD_KAFKA_OFFSET_BEGINNING;
  check(rd_kafka_assign(client.get(), start.get()), "assign");
  std::vector<Incoming> records;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) throw std::runtime_error("the end of " + topic + " was not reached");
    const kafka::MessageHandle message(
        rd_kafka_consumer_poll(client.get(), static_cast<int>(left.count())));
    if (!message) continue;
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) return records;
    // Connections come and go while a test restarts the broker.
    if (message->err == RD_KAFKA_RESP_ERR__TRANSPORT ||
        message->err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
      continue;
    check(message->err, "reading " + topic);
    records.push_back(copy_of(*message));
  }
}

}  // namespace hapax::support
