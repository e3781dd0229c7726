// Ends halts: the operator's decision, the checkpoint that follows from it, and the log of it, in
// one
// transaction. Workers notice within a checkpoint interval.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "store/operator/operator.hpp"
#include "store/session.hpp"
#include "store/worker/checkpoints.hpp"

namespace hapax::store {

struct Resumption {
  std::string group;
  std::string topic;                      // empty: the database itself, for `moved` and `copy`
  std::optional<std::int32_t> partition;  // nothing: every open halt of the topic
  std::string decision;                   // a name of decisions.hpp
  std::string who;
  std::string why;
  std::string scope;     // of the topic's route, for a checkpoint that has to be made
  bool dry_run = false;  // do it all, then roll back
  std::optional<std::int64_t> offset = std::nullopt;  // of the halt that is meant
  // The halts that the operator has seen: refused if there are others by now.
  std::optional<std::vector<std::int64_t>> seen = std::nullopt;
};

struct Resumed {
  std::vector<Halt> halts;  // those that were ended; empty: none is open there
  nlohmann::json facts;     // the rows before and after, as the operator's log keeps them
};

// `moved` and `copy` are about the database: they end the store_copied halts of every group, and
// need the owner's rights. If no topic is named, they are refused unless the database is a copy.
// All others raise the epoch of every checkpoint they touch, so that a frozen worker that wakes
// can't undo them. Throws: Refused, DatabaseError. Blocks: at most lock_timeout.
Resumed resume(Session& session, const Resumption& wanted);

}  // namespace hapax::store
