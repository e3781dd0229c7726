#include "outbox/record.hpp"

#include "outbox/letter_record.hpp"

namespace hapax::outbox {

kafka::OrderedRecord record_of(const store::OutboxRow& row, const std::string& group) {
  kafka::OrderedRecord record{row.topic, row.key, row.payload, row.headers};
  if (is_letter(row)) return record;
  record.headers.emplace_back("idempotency-key", row.idempotency_key);
  record.headers.emplace_back("hapax-origin", group + "/" + row.source_topic + "/" +
                                                  row.source_generation + "/" +
                                                  row.source_partition + "/" + row.source_offset);
  return record;
}

}  // namespace hapax::outbox
