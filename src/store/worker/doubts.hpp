// Partitions of routes that call to the outside, after PostgreSQL lost its tail: below which offset
// a call may have happened without a trace.
//
// Throws from every function: DatabaseError.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/transaction.hpp"
#include "store/worker/positions.hpp"

namespace hapax::store {

struct Doubt {
  std::int64_t below = 0;
  std::string decided;  // by an operator, for the next start; empty: nothing
};

// Those that are there. Its own transaction.
std::map<TopicPartition, Doubt> read_doubts(Session& session, const std::string& group,
                                            const std::vector<TopicPartition>& partitions);

// What an operator decided is used up. Precondition: sorted by partition.
void write_doubts(Transaction& transaction, const std::string& group,
                  const std::vector<std::pair<TopicPartition, std::int64_t>>& below);

}  // namespace hapax::store
