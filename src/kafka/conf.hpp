// librdkafka's configurations, and the clients made of them. Properties are set only here, because
// librdkafka's own error text quotes the value, which may be a secret.
#pragma once

#include "kafka/consumer.hpp"
#include "kafka/handles.hpp"

namespace hapax::kafka {

// `if_known`: set only if this version of librdkafka knows them.
// Throws: std::runtime_error with a line for each property that librdkafka does not take, or whose
// file cannot be read. Blocks: on the file system.
ConfHandle make_conf(const Properties& properties, const Properties& if_known = {});

// Throws: std::runtime_error if the properties do not fit each other; names the property.
ClientHandle make_client(rd_kafka_type_t type, ConfHandle conf);

}  // namespace hapax::kafka
