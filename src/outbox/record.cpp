#include "outbox/record.hpp"

namespace hapax::outbox {

kafka::OrderedRecord record_of(const store::OutboxRow& row, const std::string& group) {
  kafka::OrderedRecord record{row.topic, row.key, row.payload, row.headers};
  record.headers.emplace_back("idempotency-key", row.idempotency_key);
  record.headers.emplace_back("hapax-origin", group + "/" + row.source_topic + "/" +
                                                  row.source_generation + "/" +
                                                  row.source_partition + "/" + row.source_offset);
  return record;
}

}  // namespace hapax::outbox
