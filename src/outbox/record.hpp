// Makes the record that Kafka gets from a row of the outbox.
#pragma once

#include <cstddef>
#include <string>

#include "kafka/outgoing_record.hpp"
#include "store/worker/outbox.hpp"

namespace hapax::outbox {

// The handler's headers, then `idempotency-key` and `hapax-origin`. The same row always gives the
// same record. A dead letter has its own headers only.
kafka::OutgoingRecord record_of(const store::OutboxRow& row, const std::string& group);

// The bytes of its key, its payload and its headers.
std::size_t bytes_of(const kafka::OutgoingRecord& record);

}  // namespace hapax::outbox
