// A Kafka record in memory of our own.
//
// hapax copies it at once out of librdkafka's message. A held message would keep its whole fetch
// response in memory: 100 held messages of 2 KB kept 106 MB. rd_kafka_destroy would wait for it,
// too.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "hapax/message.hpp"

struct rd_kafka_message_s;

namespace hapax::kafka {

// Immutable. It is one allocation, with the message's bytes after the object.
class Record {
 public:
  // Null if librdkafka cannot read the headers: it takes at most 100,000. Without its headers a
  // message could get another idempotency key. Precondition: `source` has no error.
  static std::unique_ptr<Record> copy(rd_kafka_message_s& source);

  // Copies what the views show.
  static std::unique_ptr<Record> copy(const Message::Parts& parts);

  const Message& message() const { return message_; }

  // What it costs in memory, for the bounds of queues.
  std::size_t bytes() const { return bytes_; }

  // Without a size, because the allocation is larger than sizeof(Record).
  static void operator delete(void* memory) { ::operator delete(memory); }

 private:
  // Precondition: the allocation at `this` has `bytes` bytes.
  Record(Message::Parts parts, std::size_t bytes);

  std::size_t bytes_;
  Message message_;
};

}  // namespace hapax::kafka
