// What follows from a failure: one pure function for single messages, batches, replays, and for
// hapax's own bookkeeping.
//
// store::classify() tells what an error means; this tells what to do about it. It reads and changes
// nothing outside of its arguments, so a table tests it (tests/flow/failure_policy_test.cpp).
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <string_view>

#include "flow/outcome.hpp"
#include "store/fault.hpp"

namespace hapax::flow {

// If a message was in flight at this many lost connections, it counts as their cause, and each
// further one is a failed run.
inline constexpr int kMaxOutages = 3;

// Serialization failures, rows that stay locked and statements that are not prepared are not
// counted. After so many runs in a row that ended so, the handler is taken for the cause, and one
// failed run is counted.
inline constexpr int kMaxAgains = 20;

// The reason of a run that ended because a row stayed locked for lock_timeout.
inline constexpr std::string_view kRowHeld = "row_held";

// What a run threw.
struct Thrown {
  enum class What { error, reject, retry };
  What what = What::error;
  store::Fault fault = {};
  std::optional<std::chrono::milliseconds> after = {};  // that a Retry asks for

  // What a dead letter keeps: the words of a Reject or a Retry, not the error that it was made of.
  store::Fault kept() const;
};

// Precondition: `error` is not null.
Thrown thrown_by(const std::exception_ptr& error);

// All that the policy knows of a failure.
struct Failure {
  enum class Of {
    message,      // a run of one message
    batch,        // a transaction of several messages
    replay,       // a run of a dead letter that an operator replays
    bookkeeping,  // a transaction of hapax's own: failed runs, dead letters, announcements
  };
  Of of = Of::message;
  store::Phase phase = store::Phase::claim;
  store::Fault fault = {};
  Thrown::What thrown = Thrown::What::error;
  bool session_was_new = false;  // made for this run, so nothing in it was stale
  int agains = 0;                // runs in a row before this one that ended in Result::again
  int outages = 0;               // connections lost before, while the message ran
  bool may_wait = false;         // for rows: a worker has the message, and no client waits for it
  // The bytes of the message in the dead letter that was being written, if it was with them.
  std::optional<std::size_t> letter_bytes = {};

  // Of a batch only:
  bool handler_is_known = false;  // one message's handler failed, and it is known whose
  bool last_run = false;          // the route's retry allows no run after this one
  bool takes_turns = false;       // batches wait for each other already
};

enum class Action {
  end,                 // the run ends with Decision::result
  count,               // a failed run; of a batch: the handler's that failed
  give_up,             // a dead letter
  run_on_new_session,  // at once, because the old session may have failed, not the message
  keep_without_bytes,  // the dead letter is written again, without the message in it
  // A batch; nothing of it took effect:
  take_turns,  // again, one batch at a time, or smaller
  run_alone,   // the message whose handler failed
  split,       // again, in halves
};

struct Decision {
  Action action = Action::end;
  // With Action::end, and with any action if PostgreSQL is asked and does not answer.
  Result result = Result::again;
  std::string_view reason = {};  // a fixed word; of a dead letter with Action::give_up
  bool lost_in_handler = false;  // the message counts one more lost connection
  bool drop_session = false;     // before anything else
  bool ask = false;              // then whether PostgreSQL answers

  bool operator==(const Decision&) const = default;
};

Decision decide(const Failure& failure);

// The outcome of a run that ends so.
Outcome ending(const Decision& decision, const store::Fault& fault, int attempts);

const char* name_of(Action action);

}  // namespace hapax::flow
