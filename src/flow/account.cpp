#include "flow/account.hpp"

#include <algorithm>

#include "flow/crash_point.hpp"
#include "flow/judge.hpp"
#include "flow/verdicts.hpp"
#include "store/message/dead_letter.hpp"
#include "store/outside/calls.hpp"

namespace hapax::flow {
namespace {

bool is_skip(const Outcome& verdict) { return verdict.reason == kSkipped; }

// Giving up goes through the same claim as running: `failed` is written only if the key was won.
// Otherwise: worker A loses the partition, worker B completes m, then A gives m up and overwrites
// the key, so m could run twice.
// Returns nothing if an operator's skip overrules what the key shows. Such a letter takes no key.
std::optional<Outcome> write_with_key(Attempt& attempt, Outcome verdict) {
  store::Transaction transaction(*attempt.session);
  const store::ClaimRequest request = attempt.request();
  const store::Claim claim = store::claim(transaction, request);
  if (auto decided = judge(attempt, request, claim, transaction)) {
    if (is_skip(verdict) && is_halt(decided->result)) return std::nullopt;
    return decided;
  }
  const store::DeadLetter letter = letter_of(attempt, verdict);
  verdict.dead_letter = store::fail(transaction, request, claim.nonce, letter).value_or(0);
  return verdict;
}

Outcome write_without_key(Attempt& attempt, Outcome verdict) {
  store::Transaction transaction(*attempt.session);
  const auto id = store::insert_dead_letter(transaction, letter_of(attempt, verdict));
  transaction.commit();
  if (!id) return redelivered(attempt.task.attempts);
  verdict.dead_letter = *id;
  return verdict;
}

// Once the handler has called, its key never becomes `failed`, because the next message of the key
// would take it over and call again. The key keeps the answer.
Outcome end_call(Attempt& attempt, Outcome verdict) {
  const auto id = store::end_call(*attempt.session, attempt.request(), attempt.task.answered->token,
                                  store::CallEnd::unknown, letter_of(attempt, verdict));
  if (!id) return to_call("superseded", attempt.task.attempts, kKeyHeldWait);
  verdict.dead_letter = *id;
  return verdict;
}

Outcome write_letter(Attempt& attempt, const Outcome& verdict) {
  std::optional<Outcome> written;
  if (attempt.identity)
    written = attempt.task.answered != nullptr ? end_call(attempt, verdict)
                                               : write_with_key(attempt, verdict);
  if (!written) {
    attempt.identity.reset();
    written = write_without_key(attempt, verdict);
  }
  if (written->dead_letter > 0 && written->reason == verdict.reason) crash_point("gave_up");
  return *std::move(written);
}

Failure bookkeeping(const Attempt& attempt, const store::Fault& fault,
                    std::optional<std::size_t> letter_bytes = {}) {
  return {.of = Failure::Of::bookkeeping,
          .phase = store::Phase::account,
          .fault = fault,
          .session_was_new = attempt.session_was_new,
          .letter_bytes = letter_bytes};
}

Outcome ended(Attempt& attempt, const Decision& decision, const store::Fault& fault) {
  if (store::may_have_committed(fault)) attempt.in_doubt = true;
  if (decision.drop_session) attempt.session.drop();
  return ending(decision, fault, attempt.task.attempts);
}

}  // namespace

Outcome count_run(Attempt& attempt, const store::Fault& fault,
                  std::optional<std::chrono::milliseconds> after) {
  const Task& task = attempt.task;
  std::uniform_real_distribution<double> jitter(0.0, 1.0);
  const auto wait = task.route.retry.wait(task.attempts + 1, jitter(attempt.random), after);
  if (std::string why; !attempt.session.is_reachable_and_clean(why)) return away(why);
  std::optional<store::FailedRuns> runs;
  try {
    runs = store::record_attempt(*attempt.session, {.source = attempt.source,
                                                    .error = fault.text,
                                                    .sqlstate = fault.sqlstate,
                                                    .handler = task.route.handler.name,
                                                    .wait = wait,
                                                    .epoch = task.epoch});
  } catch (...) {
    return bookkeeping_failed(attempt, std::current_exception());
  }
  if (!runs) return fenced(task);
  crash_point("attempt_recorded");
  if (task.route.retry.exhausted(runs->count, runs->lasting)) {
    Outcome outcome =
        give_up(attempt, gave_up("attempts_exhausted", fault.text, runs->count, fault.sqlstate));
    // Count the run even if PostgreSQL did not take the letter, because the handler must not run
    // again.
    outcome.attempts = std::max(outcome.attempts, runs->count);
    return outcome;
  }
  return {.result = Result::retry,
          .reason = "failed",
          .detail = fault.text,
          .sqlstate = fault.sqlstate,
          .wait = wait,
          .attempts = runs->count};
}

void name_letter(Attempt& attempt) {
  const Task& task = attempt.task;
  if (!task.is_read() || task.route.outside || key::is_by_position(task.route.key)) return;
  key::Derived derived = key::identify(task.route.key, task.message, task.generation);
  if (auto* const identity = std::get_if<key::Identity>(&derived))
    attempt.identity = std::move(*identity);
}

Outcome give_up(Attempt& attempt, Outcome verdict) {
  const Task& task = attempt.task;
  // Cautious mode gives a message up before it derives the key. Two kinds of identity exist all the
  // same: a call derived its key before, and a position needs no look at the message. With them, a
  // worker that lost the partition writes no letter. Nor does a worker whose route still refuses
  // tombstones, if another worker has handled this one.
  const bool names_itself =
      key::is_by_position(task.route.key) &&
      (!task.is_read() || verdict.reason == kCrashed || verdict.reason == key::kTombstone);
  if ((task.answered != nullptr || names_itself) && !attempt.identity) {
    key::Derived derived =
        key::identify_also_tombstones(task.route.key, task.message, task.generation);
    if (auto* const identity = std::get_if<key::Identity>(&derived))
      attempt.identity = std::move(*identity);
  }
  if (std::string why; !attempt.session.is_reachable_and_clean(why)) return away(why);
  try {
    return write_letter(attempt, verdict);
  } catch (...) {
    const store::Fault fault = store::fault_of(std::current_exception());
    const Decision decision = decide(bookkeeping(attempt, fault, attempt.letter_bytes()));
    if (decision.action == Action::keep_without_bytes)
      return give_up_without_bytes(attempt, std::move(verdict), fault);
    // Perhaps PostgreSQL refuses the claim; the letter alone may still be taken.
    if (is_skip(verdict) && is_halt(decision.result) && attempt.identity && !task.answered) {
      attempt.session.drop();
      attempt.identity.reset();
      return give_up(attempt, std::move(verdict));
    }
    return ended(attempt, decision, fault);
  }
}

Outcome give_up_without_bytes(Attempt& attempt, Outcome verdict, const store::Fault& fault) {
  attempt.keep_bytes = false;
  verdict.detail += " (the message itself could not be kept: " + fault.text + ")";
  return give_up(attempt, std::move(verdict));
}

Outcome bookkeeping_failed(Attempt& attempt, const std::exception_ptr& error) {
  const store::Fault fault = store::fault_of(error);
  return ended(attempt, decide(bookkeeping(attempt, fault)), fault);
}

}  // namespace hapax::flow
