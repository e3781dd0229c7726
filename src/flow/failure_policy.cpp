#include "flow/failure_policy.hpp"

#include "hapax/message.hpp"

namespace hapax::flow {
namespace {

using store::FailureClass;
using store::Phase;
using Of = Failure::Of;

// A message with fewer bytes is never more than PostgreSQL's memory can take.
constexpr std::size_t kMayBeTooLarge = 64UL << 20U;

constexpr std::string_view kInternalError = "XX000";

constexpr std::string_view kLockNotAvailable = "55P03";

// The failure came while the handler ran, or at the COMMIT of what it wrote.
bool is_in_handler(const Failure& failure) {
  return failure.phase == Phase::handler || failure.phase == Phase::complete;
}

// Giving a message up must not fail because the message is larger than a statement or a row can be.
// The letter then holds only its coordinates and its error.
bool is_too_large_a_letter(const Failure& failure) {
  if (!failure.letter_bytes || !store::is_too_much(failure.fault)) return false;
  // "invalid memory alloc", or anything else that is internal to PostgreSQL and may pass.
  return failure.fault.sqlstate != kInternalError || *failure.letter_bytes >= kMayBeTooLarge;
}

// Most likely PostgreSQL is the cause. But a handler that ends so every time would run for ever.
Decision again(const Failure& failure, std::string_view reason, bool drop_session = false) {
  const bool handlers_own = is_in_handler(failure) && failure.agains >= kMaxAgains;
  return {.action = handlers_own ? Action::count : Action::end,
          .result = Result::again,
          .reason = reason,
          .drop_session = drop_session,
          .ask = handlers_own};
}

// Another transaction has the row. Its worker may stand still, and then PostgreSQL frees the row
// after idle_in_transaction_timeout. The message is not the cause.
bool waits_for_row(const Failure& failure) {
  return failure.may_wait && is_in_handler(failure) && failure.fault.sqlstate == kLockNotAvailable;
}

// The message runs again, and its claim shows whether the COMMIT took effect. But if the connection
// is lost at this message's COMMIT again and again, its handler is the cause: it slept past a
// timeout and returned. Such runs are counted, or the message would run for ever.
Decision commit_in_doubt(const Failure& failure) {
  const bool handlers_own = failure.outages + 1 >= kMaxOutages;
  return {.action = handlers_own ? Action::count : Action::end,
          .result = Result::again,
          .reason = "reconnect",
          .lost_in_handler = true,
          .drop_session = true,
          .ask = handlers_own};
}

// A connection lost while the handler ran may be the handler's own doing (it slept past a timeout,
// its SQL crashes the backend). It is an outage only if a second connection agrees.
Decision lost_connection(const Failure& failure) {
  const bool may_be_handlers_own = is_in_handler(failure) && !store::is_the_servers(failure.fault);
  const bool is_counted = failure.fault.sqlstate.empty() ||
                          store::is_of_a_transaction_that_took_long(failure.fault) ||
                          failure.outages + 1 >= kMaxOutages;
  return {.action = may_be_handlers_own && is_counted ? Action::count : Action::end,
          .result = Result::outage,
          .reason = "postgres",
          .lost_in_handler = may_be_handlers_own,
          .drop_session = true,
          .ask = may_be_handlers_own};
}

Decision lost_connection_of_batch(const Failure& failure) {
  const bool servers = store::is_the_servers(failure.fault);
  const bool in_claim = failure.phase == Phase::claim;
  Decision decision{.action = Action::end,
                    .result = Result::outage,
                    .reason = "postgres",
                    .lost_in_handler = !servers && !in_claim,
                    .drop_session = true,
                    .ask = !servers};
  if (servers) return decision;
  // If PostgreSQL answers, one of the messages may be the cause, or all together took too long. The
  // claim shows whether they were committed.
  if (failure.handler_is_known)
    decision.action = Action::run_alone;
  else if (!in_claim || !failure.fault.sqlstate.empty())
    decision.action = Action::split;
  return decision;
}

// If a handler failed by itself (Retry, or an exception that is not PostgreSQL's), its run in the
// batch counts. Otherwise it would run once more than max_attempts, and sooner than its Retry asks
// for. A last run does not count, because its neighbours may be the cause.
Decision failed_in_batch(const Failure& failure) {
  // Another batch holds a row's lock to its end. If batches take turns, none waits for such a lock.
  if (failure.fault.sqlstate == kLockNotAvailable && !failure.takes_turns)
    return {.action = Action::take_turns};
  if (!failure.handler_is_known) return {.action = Action::split};
  const bool counts = failure.fault.kind == store::Fault::Kind::other && !failure.last_run &&
                      failure.thrown != Thrown::What::reject;
  return {.action = counts ? Action::count : Action::run_alone};
}

Decision failed_run(const Failure& failure, bool refused) {
  if (store::may_be_stale(failure.fault) && !failure.session_was_new)
    return {.action = Action::run_on_new_session, .reason = "reconnect", .drop_session = true};
  if (refused && failure.of == Of::message)  // a replay halts no partition
    return {.result = Result::halt_route, .reason = "statement_refused"};
  return {.action = Action::count};
}

Decision failed_bookkeeping(const Failure& failure, FailureClass meaning) {
  const bool may_be_the_sessions =
      failure.fault.sqlstate == kInternalError && !failure.session_was_new;
  const bool is_unknown = meaning == FailureClass::halt || meaning == FailureClass::attempt ||
                          meaning == FailureClass::transaction_ended;
  if (!may_be_the_sessions && meaning == FailureClass::outage)
    return {.result = Result::outage, .reason = "postgres", .drop_session = true};
  if (!may_be_the_sessions && is_unknown)
    return {.result = Result::halt_partition, .reason = "cannot_account", .drop_session = true};
  return {.result = Result::busy, .reason = "account", .drop_session = true};
}

}  // namespace

Decision decide(const Failure& failure) {
  if (is_too_large_a_letter(failure)) return {.action = Action::keep_without_bytes};
  const FailureClass meaning = store::classify(failure.phase, failure.fault);
  if (failure.of == Of::bookkeeping) return failed_bookkeeping(failure, meaning);
  const bool batch = failure.of == Of::batch;
  if (!batch && failure.phase == Phase::handler && failure.thrown != Thrown::What::error) {
    if (failure.thrown == Thrown::What::retry) return {.action = Action::count};
    return {.action = Action::give_up, .reason = "rejected"};
  }
  switch (meaning) {
    case FailureClass::again:
      return batch ? Decision{.action = Action::take_turns} : again(failure, "serialization");
    case FailureClass::busy:
      return batch ? Decision{.action = Action::take_turns}
                   : Decision{.result = Result::busy, .reason = "key_held"};
    case FailureClass::again_reconnected: {
      Decision decision = again(failure, "reconnect", true);
      if (batch) decision.lost_in_handler = true;  // so that it runs alone the next time
      return decision;
    }
    case FailureClass::in_doubt:
      return batch ? lost_connection_of_batch(failure) : commit_in_doubt(failure);
    case FailureClass::outage:
      return batch ? lost_connection_of_batch(failure) : lost_connection(failure);
    case FailureClass::attempt:
    case FailureClass::refused:
      if (waits_for_row(failure)) return again(failure, kRowHeld);
      return batch ? failed_in_batch(failure)
                   : failed_run(failure, meaning == FailureClass::refused);
    case FailureClass::transaction_ended:
      return {.result = Result::halt_route,
              .reason = "handler_ended_transaction",
              .drop_session = true};
    case FailureClass::halt: break;
  }
  if (batch) return {.action = Action::split};
  return {.result = Result::halt_partition, .reason = "unexpected_error", .drop_session = true};
}

Outcome ending(const Decision& decision, const store::Fault& fault, int attempts) {
  return {.result = decision.result,
          .reason = std::string(decision.reason),
          .detail = fault.text,
          .sqlstate = fault.sqlstate,
          .wait = decision.result == Result::busy ? kKeyHeldWait : std::chrono::milliseconds(0),
          .attempts = attempts,
          .lost_in_handler = decision.lost_in_handler};
}

store::Fault Thrown::kept() const {
  if (what == What::error) return fault;
  return {store::Fault::Kind::other, "", fault.text};
}

Thrown thrown_by(const std::exception_ptr& error) {
  const store::Fault fault = store::fault_of(error);
  try {
    std::rethrow_exception(error);
  } catch (const Reject&) {
    return {Thrown::What::reject, fault};
  } catch (const Retry& retry) {
    return {Thrown::What::retry, fault, retry.after()};
  } catch (...) {
    return {Thrown::What::error, fault};
  }
}

const char* name_of(Action action) {
  switch (action) {
    case Action::end: return "end";
    case Action::count: return "count";
    case Action::give_up: return "give_up";
    case Action::run_on_new_session: return "run_on_new_session";
    case Action::keep_without_bytes: return "keep_without_bytes";
    case Action::take_turns: return "take_turns";
    case Action::run_alone: return "run_alone";
    case Action::split: return "split";
  }
  return "unknown";
}

}  // namespace hapax::flow
