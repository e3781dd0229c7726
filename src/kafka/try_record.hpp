// Tries whether Kafka takes one record, such as one that is too large on purpose.
#pragma once

#include <chrono>
#include <string>

#include "kafka/consumer.hpp"
#include "kafka/outgoing_record.hpp"

namespace hapax::kafka {

struct TriedRecord {
  enum class Result {
    delivered,
    too_large,  // for the topic
    failed,     // or not known to be there
  };
  Result result = Result::failed;
  std::string error;  // librdkafka's words for its code, if it was not delivered
};

// `properties`: a consumer's; only those about the connection are taken. The partition comes of the
// key as the Java client's does. `timeout`: after it the record has failed.
// Throws: as make_conf and make_client. Blocks: little longer than `timeout`.
TriedRecord try_record(const Properties& properties, const OutgoingRecord& record,
                       std::chrono::milliseconds timeout);

}  // namespace hapax::kafka
