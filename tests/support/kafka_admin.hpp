// What an operator does with Kafka's tools, for the tests: topics, and the offsets of groups.
//
// Each function makes a client of its own. Throws: std::runtime_error in Kafka's words.
// Blocks: at most 30 s.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace hapax::support {

// Returns when the topic's partitions have leaders. `configs`: such as {"cleanup.policy",
// "compact"}. Not on the mock cluster, which has create_topic of its own.
void create_topic(const std::string& bootstrap, const std::string& name, int partitions,
                  const std::map<std::string, std::string>& configs = {});

// So that there are `partitions` in all. Not on the mock cluster.
void add_partitions(const std::string& bootstrap, const std::string& topic, int partitions);

// Returns when the topic is gone. Not on the mock cluster.
void delete_topic(const std::string& bootstrap, const std::string& name);

// As `kafka-delete-records` and retention do: the log begins at `before` then. Not on the mock
// cluster.
void delete_records(const std::string& bootstrap, const std::string& topic, std::int32_t partition,
                    std::int64_t before);

// deny_read(): no user may read the topic, and everything else of it is allowed. allow_read()
// allows all again. The server needs an authorizer.
void deny_read(const std::string& bootstrap, const std::string& topic);
void allow_read(const std::string& bootstrap, const std::string& topic);
// The same for a consumer group.
void deny_group(const std::string& bootstrap, const std::string& group);
void allow_group(const std::string& bootstrap, const std::string& group);
void deny_write(const std::string& bootstrap, const std::string& topic);
void allow_write(const std::string& bootstrap, const std::string& topic);

// All of the topic's own settings: what is not named has the broker's value again. Not on the mock
// cluster.
void configure_topic(const std::string& bootstrap, const std::string& topic,
                     const std::map<std::string, std::string>& configs);

// No user may describe the group. On a server with an authorizer.
void deny_describe(const std::string& bootstrap, const std::string& group);
// No user may read the settings of brokers.
void deny_describe_configs(const std::string& bootstrap);

struct GroupOffset {
  std::int64_t offset = 0;
  std::string metadata;

  bool operator==(const GroupOffset&) const = default;
};

// What the group has committed; nothing if it has not.
std::optional<GroupOffset> committed(const std::string& bootstrap, const std::string& group,
                                     const std::string& topic, std::int32_t partition);

// As `kafka-consumer-groups --reset-offsets` does: refused while the group has members.
void reset_offset(const std::string& bootstrap, const std::string& group, const std::string& topic,
                  std::int32_t partition, const GroupOffset& offset);

// One more than the newest offset in the partition, control records included.
std::int64_t end_offset(const std::string& bootstrap, const std::string& topic,
                        std::int32_t partition);
// The offset at which consumers with read_committed stop: the end, or the first open transaction.
// Not on the mock cluster.
std::int64_t last_stable_offset(const std::string& bootstrap, const std::string& topic,
                                std::int32_t partition);

}  // namespace hapax::support
