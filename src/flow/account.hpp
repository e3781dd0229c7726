// The account of what failed: failed runs and dead letters, each in a transaction of hapax's own.
//
// Thread safety: none; each call uses the attempt's session. Throws: nothing of PostgreSQL's.
// Blocks: for PostgreSQL's answers, bounded by its timeouts.
#pragma once

#include <exception>

#include "flow/attempt.hpp"
#include "flow/outcome.hpp"

namespace hapax::flow {

// Counts a failed run. Gives the message up if the route allows no further run.
// Precondition: the identity is derived.
Outcome count_run(Attempt& attempt, const store::Fault& fault,
                  std::optional<std::chrono::milliseconds> after = {});

// Derives the key of a message that is given up before its run. Then its letter holds the key, or
// is not written if the operation is done. It does nothing for routes with `outside`, because lanes
// do not take their keys.
void name_letter(Attempt& attempt);

// Keeps the message as a dead letter, and its key, if it has one, as `failed`. Returns `verdict`,
// or what the key shows instead.
Outcome give_up(Attempt& attempt, Outcome verdict);

// The same, after PostgreSQL refused the letter because the message is too large. The letter then
// holds only the coordinates of the message and its error.
Outcome give_up_without_bytes(Attempt& attempt, Outcome verdict, const store::Fault& fault);

// A transaction of hapax's own failed. That never counts as a failure of the message.
Outcome bookkeeping_failed(Attempt& attempt, const std::exception_ptr& error);

}  // namespace hapax::flow
