// Jumps of a partition's position. They are kept so that an operator can see later what was left
// out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "store/transaction.hpp"

namespace hapax::store {

using TopicPartition = std::pair<std::string, std::int32_t>;

// Why a position is not the next message.
enum class Jump { none, first_start, foreign_reset, log_start, decision, rewind, skip };

// As hapax.position_changes.cause holds it.
const char* name_of(Jump jump);
// For people, for example that Kafka's offset was set from outside. Empty for an operator's own
// moves.
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

// Adds to the transaction. On a schema older than 5 it does nothing, because the table is missing.
// Precondition: jump is not none. Throws: DatabaseError.
void record_position_change(Transaction& transaction, const PositionChange& change);

}  // namespace hapax::store
