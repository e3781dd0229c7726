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
  std::int64_t asked = 0;      // the same, while an operator is asked; 0: none is
  std::int64_t asked_run = 0;  // that had committed Kafka's offset by then; 0: none had
  std::string decided;         // by an operator, for the next start; empty: nothing
};

// Those that are there. Its own transaction.
std::map<TopicPartition, Doubt> read_doubts(Session& session, const std::string& group,
                                            const std::vector<TopicPartition>& partitions);

// The partition is about to halt: an operator is asked about what is below. `run`: the one that
// committed Kafka's offset, or 0. Of several times with one run the first counts, until a start is
// agreed. Its own transaction.
void ask_about_doubt(Session& session, const std::string& group, const TopicPartition& partition,
                     std::int64_t below, std::int64_t run);

// What an operator decided is used up. Precondition: sorted by partition.
void write_doubts(Transaction& transaction, const std::string& group,
                  const std::vector<std::pair<TopicPartition, std::int64_t>>& below);

}  // namespace hapax::store
