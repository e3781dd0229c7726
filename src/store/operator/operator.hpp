// What an operator changes by hand: positions and keys. Each change is one transaction, with its
// entry in the operators' log.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "store/session.hpp"
#include "store/worker/positions.hpp"

namespace hapax::store {

// The order does not fit the facts, which the text names. Nothing was changed.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Kept in hapax.operator_log.
struct Operation {
  std::string who;
  std::string action;
  std::string target;
  std::string why;
  nlohmann::json facts;
};
void log_operation(Transaction& transaction, const Operation& operation);

// A partition's place before a move.
struct Stand {
  std::int64_t offset = 0;
  std::int32_t generation = 0;
};

struct Move {
  std::string group;
  TopicPartition partition;
  std::int64_t to = 0;
  Jump jump = Jump::rewind;  // or skip
  std::string who;
  std::string why;
  bool dry_run = false;
  // As the operator was shown it. If the topic was made again since, or the checkpoint was moved
  // back: refused. A worker that goes on is no reason.
  std::optional<Stand> seen = {};
};

// Moves a checkpoint and raises its epoch. A live worker notices within its checkpoint_interval and
// starts again there. A frozen worker that wakes cannot undo the move. Returns its place before.
// Precondition: `to` is in Kafka's log.
// Throws: Refused, DatabaseError. Blocks: at most lock_timeout.
Stand move_position(Session& session, const Move& move);

// Moves several partitions of one topic in one transaction: all that are not refused, or none if it
// throws. Returns why each refused one was refused, for example because a worker has moved on.
// Precondition: there is at least one.
// Throws: DatabaseError. Blocks: at most lock_timeout for each.
std::vector<std::string> move_positions(Session& session, const std::vector<Move>& moves);

struct KeyName {
  std::string key, scope, tenant;
};

// Marks a completed or failed key as forgotten, so the next message that has it runs. The row stays
// for a week at least, so that the message can come again. `seen`: the row that the operator
// decided on. If the key has changed since, this is refused. Returns the row as it was.
// Throws: Refused, DatabaseError. Blocks: at most lock_timeout.
nlohmann::json forget_key(Session& session, const KeyName& key, const nlohmann::json& seen,
                          const std::string& who, const std::string& why, bool dry_run);

struct ForgottenGroup {
  std::string group;
  std::optional<std::string> topic;  // nothing: all
  std::string who;
  std::string why;
};

// What the group leaves that only its own workers carry out: {"unsent": records, "letters": open
// dead letters, "calls": open calls to the outside}. Throws: DatabaseError.
nlohmann::json read_left_of_group(Session& session, const ForgottenGroup& gone);

// The group's checkpoints. Throws: Refused if there is none, DatabaseError.
nlohmann::json read_group(Session& session, const ForgottenGroup& gone);

// Deletes the checkpoints of a group that is gone for good, so that it holds no keys any more.
// `seen`: what read_group() returned before Kafka reported that the group has no member. Needs the
// schema's owner.
// Throws: Refused if the checkpoints have changed since, DatabaseError. Blocks: at most
// lock_timeout.
void forget_group(Session& session, const ForgottenGroup& gone, const nlohmann::json& seen);

}  // namespace hapax::store
