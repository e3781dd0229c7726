// Handing a record to librdkafka.
#pragma once

#include <librdkafka/rdkafka.h>

#include <memory>

#include "kafka/handles.hpp"
#include "kafka/outgoing_record.hpp"

namespace hapax::kafka {

using ErrorHandle = std::unique_ptr<rd_kafka_error_t, Destroyer<rd_kafka_error_destroy>>;

// Copies the record. `opaque`: for the delivery report. `partition`: kByPartitioner or one. Nothing
// if librdkafka took it; otherwise there is no report. Throws: std::runtime_error if librdkafka
// refuses a header.
inline constexpr std::int32_t kByPartitioner = RD_KAFKA_PARTITION_UA;
ErrorHandle produce(rd_kafka_t* client, const OutgoingRecord& record, void* opaque,
                    std::int32_t partition = kByPartitioner);

}  // namespace hapax::kafka
