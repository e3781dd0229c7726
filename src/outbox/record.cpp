#include "outbox/record.hpp"

#include "outbox/letter_record.hpp"

namespace hapax::outbox {

kafka::OutgoingRecord record_of(const store::OutboxRow& row, const std::string& group) {
  kafka::OutgoingRecord record{row.topic, row.key, row.payload, row.headers};
  if (is_letter(row)) return record;
  record.headers.emplace_back("idempotency-key", row.idempotency_key);
  record.headers.emplace_back("hapax-origin", group + "/" + row.source_topic + "/" +
                                                  row.source_generation + "/" +
                                                  row.source_partition + "/" + row.source_offset);
  return record;
}

std::size_t bytes_of(const kafka::OutgoingRecord& record) {
  std::size_t bytes = record.key.value_or("").size() + record.payload.value_or("").size();
  for (const auto& [name, value] : record.headers) bytes += name.size() + value.value_or("").size();
  return bytes;
}

}  // namespace hapax::outbox
