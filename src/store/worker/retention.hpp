// Removes expired keys, and tells what holds them. Each call is a short transaction of its own.
//
// A key is kept beyond its expiry while a message may wait that was sent before the expiry.
// Otherwise a repetition that was sent in time, and is processed late, would run. So each partition
// has a time `until`: all that its log showed before that time is below its checkpoint. A key is
// removed if it expired before the `until` of every partition of its scope.
// Throws: DatabaseError (Phase::account).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/session.hpp"
#include "store/worker/positions.hpp"

namespace hapax::store {

class Transaction;

// True if `holder` has the lease for `time` from now on.
bool take_lease(Session& session, const std::string& name, const std::string& holder,
                std::chrono::seconds time);

// Times are PostgreSQL's, as text.
struct ClockReading {
  std::string now;
  bool ahead = false;    // PostgreSQL's clock is too far ahead, so `now` is the caller's own time
  std::string database;  // PostgreSQL's own time
};

// The time by PostgreSQL's clock, or the caller's `own` if PostgreSQL's is ahead of it by more than
// `tolerance`.
ClockReading read_clock(Session& session, std::chrono::system_clock::time_point own,
                        std::chrono::seconds tolerance);

// Partitions that a worker has started.
struct HeldLog {
  std::int64_t epoch = 0;
  std::int64_t checkpoint = 0;
  bool operator==(const HeldLog&) const = default;
};
using HeldLogs = std::map<TopicPartition, HeldLog>;

// The end of a partition's log, for which a worker asked at `at` or later.
struct LogEnd {
  TopicPartition partition;
  std::int64_t epoch = 0;  // of the worker that asked
  std::int64_t end = 0;
  std::string at;
};

// If a partition's checkpoint has reached the end under the same epoch, records that all until `at`
// is settled. Returns those partitions.
std::set<TopicPartition> note_passed(Session& session, const std::string& group,
                                     std::vector<LogEnd> ends);

// Keys of the scope that expired before `until` may be removed.
struct HeldScope {
  std::string scope;
  std::string until;  // '-infinity': one of its partitions has not been looked at yet
  // Which partition holds it back most, and for how long.
  std::string group;
  TopicPartition partition;
  std::chrono::seconds since{0};
  std::string removed_until = "-infinity";  // by the caller: those that expired before are removed
};

// One for each scope with a checkpoint. `now`: as read_clock() told.
std::vector<HeldScope> read_held_scopes(Session& session, const std::string& now);

struct Removed {
  std::size_t keys = 0;
  std::size_t looked_at = 0;
  std::string next;  // `from` of the next call
};

// Looks at `limit` keys that have expired at `from` or later, the oldest first, and at those that
// expired with the last of them. Removes those of `scopes` that have expired before its `until`,
// and those of scopes without a checkpoint that have expired before `others` (nothing: keeps
// these). If it looked at fewer than `limit`, it has looked at all.
Removed expire_keys(Session& session, std::size_t limit, const std::string& from,
                    const std::vector<HeldScope>& scopes,
                    const std::optional<std::string>& others = std::nullopt);

// When the newest completion of a scope took effect whose key was removed. If an operation is not
// younger than that, it may have completed without a trace. "-infinity": no key was removed.
// Precondition: the caller has claimed the key, because it may be removed until then.
// Throws: DatabaseError (Phase::claim).
std::string forgotten_until(Transaction& transaction, const std::string& scope);

}  // namespace hapax::store
