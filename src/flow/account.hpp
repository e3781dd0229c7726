// The account of what failed: failed runs and dead letters, each in a transaction of hapax's own.
//
// Thread safety: none; each call uses the attempt's session. Throws: nothing of PostgreSQL's.
// Blocks: for PostgreSQL's answers, bounded by its timeouts.
#pragma once

#include <exception>

#include "flow/attempt.hpp"
#include "flow/outcome.hpp"

namespace hapax::flow {

// Counts a failed run; gives the message up if the route allows no other one.
// Precondition: the identity is derived.
Outcome count_run(Attempt& attempt, const store::Fault& fault,
                  std::optional<std::chrono::milliseconds> after = {});

// Derives the key of a message that is given up before its run, so that its letter holds the key,
// or is not written if the operation is done. Not for calls to the outside, whose keys lanes do not
// take.
void name_letter(Attempt& attempt);

// Keeps the message as a dead letter, and its key, if it has one, as `failed`. The outcome is
// `verdict`, or what was found in its place.
Outcome give_up(Attempt& attempt, Outcome verdict);

// The same, after it failed because the message is more than PostgreSQL can take. What is kept then
// is where the message is, and what its error was.
Outcome give_up_without_bytes(Attempt& attempt, Outcome verdict, const store::Fault& fault);

// A transaction of hapax's own failed; never the message's failure.
Outcome bookkeeping_failed(Attempt& attempt, const std::exception_ptr& error);

}  // namespace hapax::flow
