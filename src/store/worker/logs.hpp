// The numbers of logs: what "generation" means in a key made of coordinates (migration 7).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "store/session.hpp"
#include "store/worker/positions.hpp"

namespace hapax::store {

// A group knows this log by this number.
struct KnownLog {
  std::string scope;
  std::string cluster_id;
  std::string topic_id;  // "": the client could not tell
  std::int32_t generation = 1;
  bool agreed = true;        // false: only by another group's checkpoint
  std::int64_t reached = 0;  // that checkpoint
  // The last record below it (worker::ReadRecord); empty: not known.
  std::string last_record = {};

  // The same fact. Checkpoints move all the time.
  bool operator==(const KnownLog& other) const {
    return std::tie(scope, cluster_id, topic_id, generation, agreed) ==
           std::tie(other.scope, other.cluster_id, other.topic_id, other.generation, other.agreed);
  }
};

using KnownLogs = std::map<TopicPartition, std::vector<KnownLog>>;

// What the other groups know of these partitions' logs, in a fixed order. Nothing on a schema older
// than 7. Throws: DatabaseError.
KnownLogs read_logs(Session& session, const std::string& group,
                    const std::vector<TopicPartition>& partitions);
// The same, in the caller's transaction.
KnownLogs read_logs(Transaction& transaction, const std::string& group,
                    const std::vector<TopicPartition>& partitions);

// False on a schema older than 7.
bool has_logs(Transaction& transaction);

}  // namespace hapax::store
