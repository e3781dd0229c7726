// Jumps of a partition's position, kept so that what was left out can be told afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "store/transaction.hpp"

namespace hapax::store {

using TopicPartition = std::pair<std::string, std::int32_t>;

// Why a position is not simply the next message.
enum class Jump { none, first_start, foreign_reset, log_start, decision, rewind, skip };

// As hapax.position_changes.cause holds it.
const char* name_of(Jump jump);
// For people: "Kafka's offset was set by somebody else, …". Empty for an operator's own moves.
const char* why_of(Jump jump);

struct PositionChange {
  std::string group;
  TopicPartition partition;
  std::int32_t generation = 1;
  std::optional<std::int64_t>
      from;  // the offset at which it would have gone on; nothing: the first start
  std::int64_t to = 0;
  Jump jump = Jump::none;
  std::string who;
  std::string why;
};

// Adds to the transaction; does nothing on a schema older than 5, which has no place for it.
// Precondition: jump is not none. Throws: DatabaseError.
void record_position_change(Transaction& transaction, const PositionChange& change);

}  // namespace hapax::store
