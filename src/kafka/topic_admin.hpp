// Makes and removes topics and groups, for `hapax bench`. A worker never does. The mock cluster has
// no admin API.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "kafka/consumer.hpp"

namespace hapax::kafka {

// All: Throws: std::runtime_error with the reason. Blocks: at most `timeout`, and the client's end.

// With the broker's own number of replicas. Returns when all of it is there.
void create_topic(const Properties& properties, const std::string& name, int partitions,
                  std::chrono::milliseconds timeout);
void delete_topic(const Properties& properties, const std::string& name,
                  std::chrono::milliseconds timeout);

// Precondition: they have no members. One that is not there is no error.
void delete_groups(const Properties& properties, const std::vector<std::string>& groups,
                   std::chrono::milliseconds timeout);

}  // namespace hapax::kafka
