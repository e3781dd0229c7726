// The offsets ahead of a checkpoint that are settled already, on routes with `key: "position"`.
//
// Throws: DatabaseError (Phase::account).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/transaction.hpp"
#include "store/worker/checkpoints.hpp"

namespace hapax::store {

// Right after partitions were taken: those of which an earlier owner has a transaction open. It may
// settle offsets yet; none can begin any more. A short transaction of its own.
// Precondition: all of one group. Blocks: for no other transaction.
std::vector<TopicPartition> still_settling(Session& session, const std::vector<Taking>& taken);

// Adds what is settled at or above each start. Before, removes what a jump to the start has passed,
// and at a log's first start what is of another log.
void read_positions(Transaction& transaction, const std::string& group,
                    const std::vector<Standing>& standings,
                    std::map<TopicPartition, KnownMessages>& known);

// In the transaction that writes these checkpoints: removes what they have passed.
void delete_positions(Transaction& transaction, const std::string& group,
                      const std::vector<CheckpointWrite>& written);

}  // namespace hapax::store
