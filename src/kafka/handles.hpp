// librdkafka's C handles as unique_ptr.
#pragma once

#include <librdkafka/rdkafka.h>

#include <memory>

namespace hapax::kafka {

template <auto Destroy>
struct Destroyer {
  template <class Handle>
  void operator()(Handle* handle) const {
    Destroy(handle);
  }
};

using ClientHandle = std::unique_ptr<rd_kafka_t, Destroyer<rd_kafka_destroy>>;
using ConfHandle = std::unique_ptr<rd_kafka_conf_t, Destroyer<rd_kafka_conf_destroy>>;
using ListHandle = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                   Destroyer<rd_kafka_topic_partition_list_destroy>>;
using QueueHandle = std::unique_ptr<rd_kafka_queue_t, Destroyer<rd_kafka_queue_destroy>>;
using EventHandle = std::unique_ptr<rd_kafka_event_t, Destroyer<rd_kafka_event_destroy>>;
using ErrorHandle = std::unique_ptr<rd_kafka_error_t, Destroyer<rd_kafka_error_destroy>>;
using MessageHandle = std::unique_ptr<rd_kafka_message_t, Destroyer<rd_kafka_message_destroy>>;

}  // namespace hapax::kafka
