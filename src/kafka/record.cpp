#include "kafka/record.hpp"

#include <librdkafka/rdkafka.h>

#include <cstring>
#include <new>

namespace hapax::kafka {
namespace {

std::optional<std::string_view> bytes_or_null(const void* data, std::size_t size) {
  if (data == nullptr) return std::nullopt;
  return std::string_view(static_cast<const char*>(data), size);
}

// A view of librdkafka's memory; `headers` must outlive it.
struct Borrowed {
  Message::Parts parts;
  std::vector<Header> headers;
};

// Nothing if librdkafka cannot read the headers.
std::optional<Borrowed> borrow(rd_kafka_message_t& source) {
  Borrowed borrowed;
  Message::Parts& parts = borrowed.parts;
  parts.coordinates = {rd_kafka_topic_name(source.rkt), source.partition, source.offset};
#if RD_KAFKA_VERSION >= 0x02010000
  parts.leader_epoch = rd_kafka_message_leader_epoch(&source);
#endif
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  parts.timestamp_ms = rd_kafka_message_timestamp(&source, &type);
  if (type == RD_KAFKA_TIMESTAMP_CREATE_TIME) parts.timestamp_type = TimestampType::create_time;
  if (type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME)
    parts.timestamp_type = TimestampType::log_append_time;
  parts.key = bytes_or_null(source.key, source.key_len);
  parts.payload = bytes_or_null(source.payload, source.len);
  rd_kafka_headers_t* headers = nullptr;
  const auto error = rd_kafka_message_headers(&source, &headers);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR && error != RD_KAFKA_RESP_ERR__NOENT) return std::nullopt;
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const char* name = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    for (std::size_t i = 0;
         rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
         ++i)
      borrowed.headers.push_back({name, bytes_or_null(value, size)});
  }
  parts.headers = borrowed.headers;
  return borrowed;
}

// Hands out room in one block.
class Arena {
 public:
  explicit Arena(std::byte* at) : at_(at) {}

  std::string_view copy(std::string_view bytes) {
    if (!bytes.empty()) std::memcpy(at_, bytes.data(), bytes.size());
    const std::string_view copied(reinterpret_cast<const char*>(at_), bytes.size());
    at_ += bytes.size();
    return copied;
  }

  std::optional<std::string_view> copy(const std::optional<std::string_view>& bytes) {
    if (!bytes) return std::nullopt;
    return copy(*bytes);
  }

 private:
  std::byte* at_;
};

std::size_t size_of(const std::optional<std::string_view>& bytes) {
  return bytes ? bytes->size() : 0;
}

}  // namespace

std::unique_ptr<Record> Record::copy(rd_kafka_message_s& source) {
  const std::optional<Borrowed> borrowed = borrow(source);
  return borrowed ? copy(borrowed->parts) : nullptr;
}

std::unique_ptr<Record> Record::copy(const Message::Parts& parts) {
  std::size_t size = sizeof(Record) + parts.headers.size() * sizeof(Header) +
                     parts.coordinates.topic.size() + size_of(parts.key) + size_of(parts.payload);
  for (const Header& header : parts.headers) size += header.name.size() + size_of(header.value);
  return std::unique_ptr<Record>(new (::operator new(size)) Record(parts, size));
}

Record::Record(Message::Parts parts, std::size_t bytes)
    : bytes_(bytes), message_(Message::Parts{}) {
  const std::span<const Header> borrowed = parts.headers;
  auto* const headers = reinterpret_cast<Header*>(this + 1);
  Arena arena(reinterpret_cast<std::byte*>(headers + borrowed.size()));
  for (std::size_t i = 0; i < borrowed.size(); ++i)
    new (headers + i) Header{arena.copy(borrowed[i].name), arena.copy(borrowed[i].value)};
  parts.coordinates.topic = arena.copy(parts.coordinates.topic);
  parts.key = arena.copy(parts.key);
  parts.payload = arena.copy(parts.payload);
  parts.headers = {headers, borrowed.size()};
  message_ = Message(parts);
}

}  // namespace hapax::kafka
