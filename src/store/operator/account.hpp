// What hapax's tables know of messages, for `explain` and `audit`: many at once, without their
// bytes. Reads only, each one short transaction.
//
// Throws: DatabaseError. Precondition: the schema is kSchema or newer.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "key/identity.hpp"
#include "store/message/claim.hpp"
#include "store/session.hpp"
#include "store/worker/positions.hpp"

namespace hapax::store {

// Times are ISO 8601.
struct KeyRow {
  KeyHolder holder;
  bool retaken = false;    // it was failed or forgotten at some time, and changed since
  std::string updated_at;  // of the holder's transaction, or when it was forgotten
  std::string expires_at;
  bool refused = false;  // ended without an effect (read_key_rows.sql)
};

struct DeadRow {
  std::int64_t id = 0;
  std::string reason, error, created_at;
  std::optional<std::string> ended_at, ended_as, ended_by, ended_why;
};

struct AttemptRow {
  int count = 0;
  int crashes = 0;  // announced and not withdrawn: the process died, or it runs now
  std::string last_error, last_at, next_try;
};

struct JumpRow {
  std::optional<std::int64_t> from;  // nothing: the first start
  std::int64_t to = 0;
  std::string cause, who, why, at;
  std::int64_t at_ms = 0;  // since 1970
};

// What an operator decided.
struct Decided {
  std::string who, why, at;
};

// Offsets [from, to) of a partition, as one group knows them.
struct Stretch {
  std::string group;
  TopicPartition partition;
  std::int32_t generation = 1;
  std::int64_t from = 0;
  std::int64_t to = 0;
};

// As many as `identities`, in their order; nothing if there is no such key.
std::vector<std::optional<KeyRow>> read_key_rows(
    Session& session, const std::string& scope,
    const std::vector<const key::Identity*>& identities);

// By offset.
std::map<std::int64_t, DeadRow> read_dead_rows(Session& session, const Stretch& stretch);
std::map<std::int64_t, AttemptRow> read_attempt_rows(Session& session, const Stretch& stretch);

// Of a route whose key is the position: what is settled and not passed by the checkpoint.
std::set<std::int64_t> read_settled(Session& session, const Stretch& stretch);

// Oldest first.
std::vector<JumpRow> read_jumps(Session& session, const std::string& group,
                                const TopicPartition& partition, std::int32_t generation);

// The last time that an operator ended `offset_above_end` with `same_topic`.
std::optional<Decided> read_same_topic(Session& session, const std::string& group,
                                       const TopicPartition& partition, std::int32_t generation);

// The replays of a dead letter, as JSON rows.
nlohmann::ordered_json read_replays_of(Session& session, std::int64_t dead_letter);

}  // namespace hapax::store
