// A Kafka record in memory of our own.
//
// Copied at once out of librdkafka's message: a held message pins its whole fetch response (100
// held messages of 2 KB kept 106 MB) and rd_kafka_destroy waits for it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "hapax/message.hpp"

struct rd_kafka_message_s;

namespace hapax::kafka {

// Immutable; one allocation, its bytes behind it.
class Record {
 public:
  // Null if librdkafka cannot read the headers: it takes at most 100,000. Without its headers a
  // message could get another idempotency key. Precondition: `source` has no error.
  static std::unique_ptr<Record> copy(rd_kafka_message_s& source);

  // Of what the views show.
  static std::unique_ptr<Record> copy(const Message::Parts& parts);

  const Message& message() const { return message_; }

  // What it costs in memory, for the bounds of queues.
  std::size_t bytes() const { return bytes_; }

  // Without a size: there is more than sizeof(Record).
  static void operator delete(void* memory) { ::operator delete(memory); }

 private:
  // Precondition: there are `bytes` at `this`, all of it.
  Record(Message::Parts parts, std::size_t bytes);

  std::size_t bytes_;
  Message message_;
};

}  // namespace hapax::kafka
