// What operators order about dead letters: run them again, leave them for good. Kept in
// hapax.operator_log, in the same transaction.
//
// Each call is one transaction about one bounded page of letters. It locks a letter's own row
// first, so that the second of two operators sees what the first one did. It never waits for a
// running replay.
//
// Throws: DatabaseError. Blocks: at most lock_timeout.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/operator/inspect.hpp"
#include "store/session.hpp"

namespace hapax::store {

using LetterIds = std::vector<std::int64_t>;

inline constexpr int kLettersAtOnce = 500;

// The reason of a letter whose message an operator has decided not to run (`skip`).
inline constexpr const char* kSkippedByOperator = "skipped_by_operator";

// Open dead letters of a group that fit all that is set. Those that an operator has skipped are
// left out, unless `ids` or `reason` name them or `skipped` is set.
struct OpenLetters {
  std::string group;
  LetterIds ids;  // empty: any
  OptionalText topic, handler, reason;
  OptionalText error;  // a part of it
  OptionalText key;    // as stored
  OptionalText scope, tenant;
  std::optional<std::chrono::seconds> since, until;  // at most, at least so old
  std::int64_t above = 0;                            // ids above this one
  std::optional<std::int64_t> up_to;
  bool skipped = false;

  bool takes_skipped() const { return skipped || !ids.empty() || reason == kSkippedByOperator; }
};

// At most kLettersAtOnce of them, oldest first.
Json page_of(Session& session, const OpenLetters& wanted);

struct Order {
  std::string group;
  std::string who;
  std::string why;
};

struct Replacement {
  std::string payload;
};

struct Wanted {
  LetterIds added;     // replays
  Json wanted_before;  // open replays of another operator: id, dead_letter, who, wanted_at, edited
  std::size_t ended = 0;    // letters that were ended meanwhile
  LetterIds without_bytes;  // not wanted: their messages were not kept, and there is no `instead`
};
// `instead`: a payload that runs in place of the letter's own.
Wanted want_replays(Session& session, const Order& order, const LetterIds& letters,
                    const std::optional<Replacement>& instead);

// Calls to the outside that an order about these letters would leave without an end:
// sql/operator/read_calls_of_letters.sql.
Json read_calls_of(Session& session, const LetterIds& letters);

struct Cancelled {
  LetterIds letters;
  std::size_t running = 0;  // a worker has claimed them: not cancelled
  // Whose replays book an answer or carry out a decision: cancelled too if `decided`, else left.
  Json calls;
};
Cancelled cancel_replays(Session& session, const Order& order, const LetterIds& letters,
                         bool decided = false);

struct Discarded {
  LetterIds letters;
  std::size_t running = 0;  // a worker may run them now: not discarded
  std::size_t ended = 0;    // another operator ended them meanwhile
  Json calls;               // that are not done: not discarded
};
Discarded discard(Session& session, const Order& order, const LetterIds& letters);

// How far these replays are: sql/operator/read_replay_progress.sql. `longest_run`: what a worker
// may take.
Json read_progress(Session& session, const LetterIds& replays, std::chrono::seconds longest_run);

}  // namespace hapax::store
