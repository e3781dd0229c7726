// Gathers what is known of the messages of a partition, for fate.hpp to judge.
//
// Owned by the command's thread. Throws: store::DatabaseError.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "inspect/fate.hpp"
#include "kafka/record.hpp"

namespace hapax::app {

// For people, shown if Standing::other_keys is set.
inline constexpr const char* kOtherKeys =
    "the group ran under another key, tenant or scope than this configuration's. What it settled "
    "then seems unaccounted now. Ask with the configuration that it ran with";

// The route of a topic. Throws: Stop(kFailed) naming the topics that have one.
const config::Route& route_of(const config::Config& config, const std::string& topic);

// `count`: how many partitions Kafka has of the topic; 0: none.
// Throws: Stop(kUnreachable) without the topic, Stop(kFailed) if it has no such partition.
void expect_partition(const std::string& topic, int count, std::int32_t partition);

// Runs `ask`; if Kafka does not answer, that ends the command. Throws: Stop(kUnreachable), and
// what else `ask` throws.
void asking_kafka(const std::function<void()>& ask);

// Milliseconds since 1970.
std::int64_t now_ms();

Standing read_standing(store::Session& session, const std::string& group,
                       const config::Route& route, std::int32_t partition, std::int64_t now_ms);

// Returns what is known of [from, to), by offset. There are facts for each record, and for each
// offset that PostgreSQL knows by its coordinates. It asks PostgreSQL four questions for any number
// of records. Precondition: `records` are all that Kafka has there, in their order.
std::vector<Facts> gather(store::Session& session, const Standing& standing,
                          const config::Route& route, std::int64_t from, std::int64_t to,
                          std::span<const std::unique_ptr<kafka::Record>> records);

}  // namespace hapax::app
