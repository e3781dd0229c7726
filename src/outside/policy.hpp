// Decides what follows from the facts about a call: two pure functions, with a table in
// tests/outside/policy_test.cpp.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "config/config.hpp"

namespace hapax::outside {

// What PostgreSQL tells of an operation when its key is taken.
struct History {
  int calls = 1;                     // takes that may have called, this one included
  int crashes = 0;                   // takes alone that the process did not survive
  std::chrono::milliseconds age{0};  // since the first call was begun
  bool answered = false;
};

// The same if PostgreSQL lost commits, and may have forgotten a call for this operation. A call is
// at most as old as its message.
History in_doubt(History history, std::chrono::milliseconds age_of_message);

enum class Step {
  call,
  reconcile,  // and call, if it was not done
  book,
  give_up,  // as unknown: an operator decides
};

struct Plan {
  Step step = Step::call;
  std::string_view why = {};  // give_up: a sentence for people
};

// Decides before a call. `max_crashes`: of the route's retry.
Plan plan(const config::Outside& outside, const History& history, int max_crashes);

// How a call, or a reconcile, came back.
struct Ended {
  enum class How {
    answered,
    refused,     // Reject: the other side refused
    not_called,  // NotCalled: surely nothing was sent
    no_call,     // BadPayload: surely nothing was sent, and nothing can be
    not_begun,   // hapax did not begin it, so it is no failure
    failed,      // anything else: it may have happened
    unknown,     // reconcile cannot tell yet, or failed
  };
  How how = How::answered;
  std::string text = {};                                // answered: JSON; else the error
  std::optional<std::chrono::milliseconds> after = {};  // that a Retry asks for
  bool none_before = false;  // reconcile has told of each earlier call that it is not done
};

enum class Then {
  keep_answer,
  refuse,     // the operation is done, with a dead letter
  put_back,   // not counted
  try_again,  // counted as an attempt
  fail,       // a dead letter, and the key is `failed`: it was never called
  reject,     // the same, at the first attempt
  give_up,    // as unknown
};

// `calls`: as in History. `exhausted`: the route's retry allows no further attempt.
Then after(const config::Outside& outside, const Ended& ended, int calls, bool exhausted);

}  // namespace hapax::outside
