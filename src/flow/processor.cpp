#include "flow/processor.hpp"

#include <nlohmann/json.hpp>

#include "flow/crash_point.hpp"
#include "flow/lent_context.hpp"
#include "flow/verdicts.hpp"
#include "store/dead_letter.hpp"

namespace hapax::flow {
namespace {

using store::FailureClass;
using store::Phase;

// A message with fewer bytes is never more than PostgreSQL's memory can take.
constexpr std::size_t kMayBeTooLarge = 64UL << 20U;

}  // namespace

const char* name_of(Result result) {
  switch (result) {
    case Result::completed: return "completed";
    case Result::duplicate: return "duplicate";
    case Result::failed: return "failed";
    case Result::skipped: return "skipped";
    case Result::retry: return "retry";
    case Result::again: return "again";
    case Result::busy: return "busy";
    case Result::outage: return "outage";
    case Result::waits: return "waits";
    case Result::halt_partition: return "halt_partition";
    case Result::halt_route: return "halt_route";
  }
  return "unknown";
}

std::chrono::milliseconds RetryPolicy::wait(int failures, double jitter) const {
  std::chrono::milliseconds full = first;
  for (int i = 1; i < failures && full < max; ++i) full *= 2;
  full = std::min(full, max);
  return full / 2 + std::chrono::milliseconds(
                        static_cast<std::int64_t>(jitter * static_cast<double>(full.count()) / 2));
}

bool RetryPolicy::exhausted(int failures, std::chrono::milliseconds lasting) const {
  return failures >= max_attempts || (failures > 0 && max_elapsed && lasting >= *max_elapsed);
}

Outcome Processor::process(const Task& task, Handler& handler, const Next& next) {
  if (task.breaker != nullptr && task.breaker->is_open()) {
    abandon();
    return held();
  }
  // Whichever lane it comes to: what this process announced and lives to tell was no crash.
  if (task.announced) session_.set_announced(source_of(task));
  Outcome outcome = process_once(task, handler, next);
  if (std::exchange(run_anew_, false)) outcome = process_once(task, handler, {});
  if (!is_settled(outcome.result)) outcome.announced = session_.take_announced();
  if (task.breaker != nullptr) task.breaker->learn(outcome);
  return outcome;
}

Outcome Processor::process_once(const Task& task, Handler& handler, const Next& next) {
  if (ahead_ && ahead_->message != &task.message) abandon();
  std::string why;
  has_new_session_ = !session_.is_open();
  if (!session_.is_reachable(why)) return halt(Result::outage, "postgres", why);
  try {
    if (session_.is_behind_a_loss(task.incarnation))
      return later(Result::busy, "tail_lost", {}, kKeyHeldWait, task.attempts);
  } catch (...) {
    return account_failed(std::current_exception());
  }
  if (task.skip != nullptr)
    return give_up(task, nullptr, gave_up("skipped_by_operator", *task.skip, task.attempts));
  if (!task.cautious) return derive_and_run(task, handler, next);
  if (auto decided = announce(task)) return *decided;
  Outcome outcome = derive_and_run(task, handler, {});
  if (session_.is_open()) session_.is_reachable(why);
  return outcome;
}

// Cautious mode: committed before even the key is derived, so that the message that kills the
// process names itself, and after max_crashes is kept without being run.
std::optional<Outcome> Processor::announce(const Task& task) {
  int crashes = 0;
  const store::Source source = source_of(task);
  session_.set_announced(source);  // also if the answer is lost: it may stand
  try {
    crashes = store::announce_run(*session_, source, task.route.handler.name);
  } catch (...) {
    return account_failed(std::current_exception());
  }
  if (crashes <= task.route.retry.max_crashes) return std::nullopt;
  session_.take_announced();
  return give_up(task, nullptr,
                 gave_up("crashed",
                         "the worker process ended " + std::to_string(crashes - 1) +
                             " times while this message ran; it was not run again",
                         task.attempts));
}

Outcome Processor::derive_and_run(const Task& task, Handler& handler, const Next& next) {
  const key::Derived derived = ahead_
                                   ? std::move(ahead_->identity)
                                   : key::identify(task.route.key, task.message, task.generation);
  if (const auto* refusal = std::get_if<key::Refusal>(&derived))
    return give_up(task, nullptr, gave_up(refusal->reason, refusal->detail, task.attempts));
  if (std::holds_alternative<key::SkippedTombstone>(derived)) return Outcome::of(Result::skipped);
  const key::Identity& identity = std::get<key::Identity>(derived);
  if (task.route.retry.exhausted(task.attempts, task.failing))  // the last ended in the watchdog
    return give_up(
        task, &identity,
        gave_up("attempts_exhausted",
                "no run is left: the last did not end, or retry was lowered since", task.attempts));
  if (task.outages >= kMaxOutages)  // and PostgreSQL was gone each time, so that none was counted
    return count_attempt(
        task, identity,
        {store::Fault::Kind::connection, "",
         "PostgreSQL was lost " + std::to_string(task.outages) + " times while this message ran"},
        std::nullopt);
  Outcome outcome;
  try {
    outcome = run(task, identity, handler, next);
  } catch (...) {
    outcome = failed(task, identity, std::current_exception());
  }
  session_.clean();
  if (is_settled(outcome.result)) batch_limit_.passed(1);
  duplicates_in_a_row_ = outcome.result == Result::duplicate ? duplicates_in_a_row_ + 1 : 0;
  if (task.is_in_attempts() && outcome.result == Result::duplicate) forget_attempts(task);
  return outcome;
}

// The way of a message through PostgreSQL. One transaction; every exception leaves through
// process(), and the transaction's destructor rolls back.
Outcome Processor::run(const Task& task, const key::Identity& identity, Handler& handler,
                       const Next& next) {
  const store::Source source = source_of(task);
  const store::ClaimRequest request{
      identity, task.route.key.scope, source, task.route.retention, task.agains > 0, task.epoch};
  phase_ = Phase::claim;
  if (is_known_duplicate(task, request, handler)) return Outcome::of(Result::duplicate);
  std::optional<Ahead> ahead = std::exchange(ahead_, std::nullopt);
  auto opened =
      ahead ? std::move(ahead->transaction) : std::make_unique<store::Transaction>(*session_);
  store::Transaction& transaction = *opened;
  const store::Claim claim = ahead ? store::claim(transaction, request, std::move(ahead->taken))
                                   : store::claim(transaction, request);
  if (auto decided = judge(task, request, claim, transaction)) {
    const bool hook = decided->result == Result::duplicate && handler.wants_duplicates();
    return hook ? run_duplicate(task, request, claim.nonce, transaction, handler) : *decided;
  }
  crash_point("claimed");

  phase_ = Phase::handler;
  LentContext context(transaction, task.route.max_result_bytes);
  const auto began = Clock::now();
  try {
    const Watched watched(watch_, task, began);
    handler.handle(task.message, context);
  } catch (...) {
    store::refuse_ended(transaction, claim.nonce);
    throw;
  }
  const auto handler_time = Clock::now() - began;
  crash_point("handled");
  // What the handler deferred fails as the handler's, though it travels with the completion.
  phase_ = transaction.has_pending() ? Phase::handler : Phase::complete;
  if (task.is_in_attempts()) store::add_forget_attempts(transaction, source);
  complete(std::move(opened), task, request, claim.nonce, context.stored_result(), next);
  crash_point("committed");
  return {.result = Result::completed, .handler_time = handler_time};
}

Outcome Processor::run_duplicate(const Task& task, const store::ClaimRequest& request,
                                 const std::string& nonce, store::Transaction& transaction,
                                 Handler& handler) {
  std::optional<std::string> stored;
  if (!store::count_duplicate(transaction, request, stored)) return Outcome::of(Result::again);
  phase_ = Phase::handler;
  LentContext context(transaction, task.route.max_result_bytes);
  try {
    const Watched watched(watch_, task, Clock::now());
    handler.on_duplicate(task.message,
                         stored ? std::optional(nlohmann::json::parse(*stored)) : std::nullopt,
                         context);
  } catch (...) {
    store::refuse_ended(transaction, nonce);
    throw;
  }
  phase_ = transaction.has_pending() ? Phase::handler : Phase::complete;
  store::complete(transaction, request, nonce, std::nullopt);
  return Outcome::of(Result::duplicate);
}

// The one place that says what a failure means.
Outcome Processor::failed(const Task& task, const key::Identity& identity,
                          const std::exception_ptr& error) {
  if (phase_ == Phase::handler) {
    try {
      std::rethrow_exception(error);
    } catch (const Reject& reject) {
      return give_up(task, &identity,
                     gave_up("rejected", store::text_of(reject), task.attempts + 1));
    } catch (const Retry& retry) {
      return count_attempt(task, identity, {store::Fault::Kind::other, "", store::text_of(retry)},
                           retry.after());
    } catch (...) {
      // PostgreSQL's or the handler's own: the table says.
    }
  }
  const store::Fault fault = store::fault_of(error);
  if (phase_ == Phase::account) {  // the dead letter of a drifted payload
    Outcome drift =
        gave_up("payload_drift", "the key was completed with another payload", task.attempts);
    if (auto kept = give_up_without_bytes(task, &identity, std::move(drift), fault)) return *kept;
  }
  const FailureClass meaning = store::classify(phase_, fault);
  switch (meaning) {
    case FailureClass::again: return again(task, identity, fault, "serialization");
    case FailureClass::again_reconnected:
      session_.drop();
      return again(task, identity, fault, "reconnect");
    case FailureClass::in_doubt: return commit_in_doubt(task, identity, fault);
    case FailureClass::busy:
      return later(Result::busy, "key_held", fault, kKeyHeldWait, task.attempts);
    case FailureClass::outage: return lost_connection(task, identity, fault);
    case FailureClass::attempt:
    case FailureClass::refused:
      if (store::may_be_stale(fault) && !has_new_session_) {
        session_.drop();
        run_anew_ = true;
        return later(Result::again, "reconnect", fault, {}, task.attempts);
      }
      if (meaning == FailureClass::attempt)
        return count_attempt(task, identity, fault, std::nullopt);
      return halt(Result::halt_route, "statement_refused",
                  "PostgreSQL refuses a statement of handler \"" + task.route.handler.name +
                      "\", and would for every message: a table, column, function, library or "
                      "right is missing, or the SQL is wrong: " +
                      fault.text,
                  fault.sqlstate);
    case FailureClass::transaction_ended:
      session_.drop();
      return halt(Result::halt_route, "handler_ended_transaction",
                  "handler \"" + task.route.handler.name +
                      "\" ended the transaction it was lent (COMMIT, ROLLBACK, SET CONSTRAINTS or "
                      "RESET ALL); part of its effect may stand alone, so it is not run again: " +
                      fault.text,
                  fault.sqlstate);
    case FailureClass::halt: break;
  }
  session_.drop();
  return halt(Result::halt_partition, "unexpected_error", fault.text, fault.sqlstate);
}

// PostgreSQL's doing, most likely. But a handler that ends so every time would run for ever.
Outcome Processor::again(const Task& task, const key::Identity& identity, const store::Fault& fault,
                         const char* reason) {
  const bool in_handler = phase_ == Phase::handler || phase_ == Phase::complete;
  std::string why;
  if (in_handler && task.agains >= kMaxAgains && session_.is_reachable(why))
    return count_attempt(task, identity, fault, std::nullopt);
  return later(Result::again, reason, fault, {}, task.attempts);
}

// A connection lost while the handler ran may be the handler's own doing (it slept past a timeout,
// its SQL crashes the backend). It is an outage only when a second connection agrees.
Outcome Processor::lost_connection(const Task& task, const key::Identity& identity,
                                   const store::Fault& fault) {
  const bool in_handler = phase_ == Phase::handler || phase_ == Phase::complete;
  session_.drop();
  std::string why;
  if (in_handler && !store::is_the_servers(fault) && session_.is_reachable(why) &&
      (fault.sqlstate.empty() || store::is_of_a_transaction_that_took_long(fault) ||
       task.outages + 1 >= kMaxOutages))
    return count_attempt(task, identity, fault, std::nullopt);
  Outcome outage = halt(Result::outage, "postgres", fault.text, fault.sqlstate);
  outage.lost_in_handler = in_handler && !store::is_the_servers(fault);
  return outage;
}

// Run again, and the claim finds out. But a connection that is lost at this message's COMMIT again
// and again was lost by its handler (it slept past a timeout and returned): counted, or it would
// run for ever.
Outcome Processor::commit_in_doubt(const Task& task, const key::Identity& identity,
                                   const store::Fault& fault) {
  session_.drop();
  std::string why;
  if (task.outages + 1 >= kMaxOutages && session_.is_reachable(why))
    return count_attempt(task, identity, fault, std::nullopt);
  Outcome outcome = later(Result::again, "reconnect", fault, {}, task.attempts);
  outcome.lost_in_handler = true;
  return outcome;
}

Outcome Processor::count_attempt(const Task& task, const key::Identity& identity,
                                 const store::Fault& fault,
                                 std::optional<std::chrono::milliseconds> after) {
  std::uniform_real_distribution<double> jitter(0.0, 1.0);
  const auto wait =
      std::clamp(after.value_or(task.route.retry.wait(task.attempts + 1, jitter(random_))),
                 std::chrono::milliseconds(0), std::chrono::milliseconds(kLongestRetryWait));
  const store::Source source = source_of(task);
  if (std::string why; !session_.is_reachable_and_clean(why))
    return halt(Result::outage, "postgres", why);
  store::FailedRuns runs;
  try {
    phase_ = Phase::account;
    runs = store::record_attempt(
        *session_, {source, fault.text, fault.sqlstate, task.route.handler.name, wait});
  } catch (...) {
    return account_failed(std::current_exception());
  }
  crash_point("attempt_recorded");
  if (task.route.retry.exhausted(runs.count, runs.lasting))
    return give_up(task, &identity,
                   gave_up("attempts_exhausted", fault.text, runs.count, fault.sqlstate));
  return later(Result::retry, "failed", fault, wait, runs.count);
}

// Giving up goes through the same claim as running: `failed` is written only if the key was won.
// Else: A gives up on m after losing the partition, B completed m, A overwrites, m runs twice.
Outcome Processor::give_up(const Task& task, const key::Identity* identity, Outcome verdict) {
  phase_ = Phase::account;
  if (std::string why; !session_.is_reachable_and_clean(why))
    return halt(Result::outage, "postgres", why);
  const store::Source source = source_of(task);
  const store::DeadLetter letter = letter_of(task, source, identity, verdict);
  try {
    store::Transaction transaction(*session_);
    if (identity == nullptr) {
      const auto id = store::insert_dead_letter(transaction, letter);
      transaction.commit();
      if (!id) return redelivered(task.attempts);
      verdict.dead_letter = *id;
    } else {
      const store::ClaimRequest request{
          *identity, task.route.key.scope, source, task.route.retention, false, task.epoch};
      const store::Claim claim = store::claim(transaction, request);
      if (auto decided = judge(task, request, claim, transaction)) return *decided;
      verdict.dead_letter = store::fail(transaction, request, claim.nonce, letter).value_or(0);
    }
  } catch (...) {
    const auto error = std::current_exception();
    const auto kept = give_up_without_bytes(task, identity, verdict, store::fault_of(error));
    return kept ? *kept : account_failed(error);
  }
  crash_point("gave_up");
  return verdict;
}

// The last resort: giving up must not fail because of the message, which may be more than a
// statement or a row can hold. Its coordinates and error then stand alone.
std::optional<Outcome> Processor::give_up_without_bytes(const Task& task,
                                                        const key::Identity* identity,
                                                        Outcome verdict,
                                                        const store::Fault& fault) {
  if (!task.keep_bytes || !store::is_too_much(fault)) return std::nullopt;
  const std::size_t bytes =
      task.message.payload().value_or("").size() + task.message.key().value_or("").size();
  // "invalid memory alloc", or anything else that is internal to PostgreSQL and may pass.
  if (fault.sqlstate == "XX000" && bytes < kMayBeTooLarge) return std::nullopt;
  Task bare = task;
  bare.keep_bytes = false;
  verdict.detail += " (the message itself could not be kept: " + fault.text + ")";
  return give_up(bare, identity, std::move(verdict));
}

Outcome Processor::account_failed(const std::exception_ptr& error) {
  const store::Fault fault = store::fault_of(error);
  const FailureClass meaning = store::classify(Phase::account, fault);
  session_.drop();
  if (fault.sqlstate == "XX000" && !has_new_session_)  // may be the old session's
    return later(Result::busy, "account", fault, kKeyHeldWait, 0);
  switch (meaning) {
    case FailureClass::outage: return halt(Result::outage, "postgres", fault.text, fault.sqlstate);
    case FailureClass::halt:
    case FailureClass::attempt:
    case FailureClass::transaction_ended:
      return halt(Result::halt_partition, "cannot_account", fault.text, fault.sqlstate);
    default: return later(Result::busy, "account", fault, kKeyHeldWait, 0);
  }
}

store::Source Processor::source_of(const Task& task) const {
  return {task.group, std::string(task.message.topic()), task.generation, task.message.partition(),
          task.message.offset()};
}

}  // namespace hapax::flow
