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

// Immutable; one allocation beside itself.
class Record {
 public:
  // Precondition: `source` is a message without an error.
  explicit Record(rd_kafka_message_s& source);

  // A copy of what the views show.
  explicit Record(Message::Parts parts);

  const Message& message() const { return message_; }

  // What it costs in memory, for the bounds of queues.
  std::size_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<std::byte[]> block_;
  std::size_t bytes_ = 0;
  Message message_;
};

}  // namespace hapax::kafka
