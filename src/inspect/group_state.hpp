// The state of a group as `hapax status --json` prints it.
#pragma once

#include <map>

#include "cli/output.hpp"
#include "config/config.hpp"
#include "inspect/group_in_kafka.hpp"
#include "store/session.hpp"
#include "store/worker/checkpoints.hpp"

namespace hapax::app {

inline constexpr int kMaxWaiting = 50;

// The state of a partition whose worker died.
inline constexpr const char* kOwnerIsGone = "owner is gone";

// The partitions and halts that PostgreSQL knows.
struct GroupInStore {
  std::map<store::TopicPartition, Json> partitions;
  std::vector<store::Halt> halts;
};
// Throws: DatabaseError.
GroupInStore read_group_in_store(store::Session& session, const std::string& group);

// What Kafka shall be asked about.
KafkaSide to_ask(const GroupInStore& known);

// The whole state. `side`: what Kafka told, also of other partitions than `known` has.
// Throws: DatabaseError.
Json group_state(const config::Config& config, store::Session& session, GroupInStore known,
                 const KafkaSide& side);

}  // namespace hapax::app
