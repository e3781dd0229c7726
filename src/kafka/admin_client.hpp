// What every call of Kafka's admin API needs: a client of its own, a deadline, the answer.
#pragma once

#include <chrono>
#include <memory>

#include "kafka/consumer.hpp"
#include "kafka/handles.hpp"

namespace hapax::kafka {

using OptionsHandle =
    std::unique_ptr<rd_kafka_AdminOptions_t, Destroyer<rd_kafka_AdminOptions_destroy>>;

// Throws: as make_conf and make_client.
ClientHandle make_admin_client(const Properties& properties);

OptionsHandle admin_options(rd_kafka_t* client, std::chrono::milliseconds timeout);

// Throws: std::runtime_error with the broker's reason, or that none answered. Blocks: at most
// `timeout`.
EventHandle admin_answer(rd_kafka_queue_t* queue, std::chrono::milliseconds timeout);

}  // namespace hapax::kafka
