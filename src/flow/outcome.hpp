// What became of one run of one message.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "traces/trace.hpp"

namespace hapax::flow {

// How long a message or a replay waits for a key that another transaction holds.
inline constexpr std::chrono::milliseconds kKeyHeldWait{250};

// The longest wait that a handler's Retry may ask for; a longer one is cut to it.
inline constexpr std::chrono::hours kLongestRetryWait{24 * 365};

enum class Result {
  // settled: committed in PostgreSQL, or nothing to commit; the watermark may pass
  completed,
  duplicate,
  failed,   // a dead letter
  skipped,  // a tombstone, by the route's policy
  // not settled: the message stays with the worker
  retry,   // failed; an attempts row is written; not before `wait`
  again,   // run again at once, not counted
  busy,    // another transaction holds the key; run later, not counted
  outage,  // PostgreSQL is away; wait until it is back, not counted
  waits,   // not run: something before it, of its order key or in its batch, is not settled
  halt_partition,
  halt_route,
};

constexpr bool is_settled(Result result) { return result <= Result::skipped; }
constexpr bool is_halt(Result result) { return result >= Result::halt_partition; }

struct Outcome {
  Result result = Result::completed;
  std::string reason = {};  // failed and halts: a fixed word
  std::string detail = {};  // for people; may quote the message, so never for the log
  std::string sqlstate = {};
  std::chrono::milliseconds wait{0};  // retry, busy
  int attempts = 0;                   // failed runs so far, this one included
  bool lost_in_handler = false;  // the connection broke while the handler ran, or at its COMMIT
  bool in_doubt = false;         // its transaction may have been committed, or may still be
  // The epoch under which a cautious run is announced that could not be withdrawn.
  std::optional<std::int64_t> announced = {};
  int crashes = 0;        // given up after so many deaths of the process, which is not written yet
  bool of_batch = false;  // a halt of all that shared the transaction, not of this message
  std::chrono::nanoseconds handler_time{0};  // 0: the handler did not run
  std::int64_t dead_letter = 0;              // failed: the id of its new letter
  bool to_call = false;  // of an outside route: its key must be taken, or taken again

  static Outcome of(Result result) { return {.result = result}; }
};

const char* name_of(Result result);

// How its span ends.
traces::Ended ended_as(const Outcome& outcome);

}  // namespace hapax::flow
