// Makes librdkafka clients for the tests.
#pragma once

#include <librdkafka/rdkafka.h>

#include <map>
#include <string>

#include "kafka/handles.hpp"

namespace hapax::support {

// A configuration with these properties. Throws: std::runtime_error naming the refused one.
kafka::ConfHandle configuration(const std::string& bootstrap,
                                const std::map<std::string, std::string>& properties);

// The caller destroys it. Throws: std::runtime_error.
rd_kafka_t* make_client(rd_kafka_type_t type, kafka::ConfHandle conf);

// Throws: std::runtime_error with `what` if there is an error.
void check(rd_kafka_resp_err_t error, const std::string& what);
void check(rd_kafka_error_t* error, const std::string& what);  // and destroys it

}  // namespace hapax::support
