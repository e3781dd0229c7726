#include "flow/processor.hpp"

#include <nlohmann/json.hpp>

#include "flow/account.hpp"
#include "flow/booking.hpp"
#include "flow/crash_point.hpp"
#include "flow/judge.hpp"
#include "flow/lent_context.hpp"
#include "flow/verdicts.hpp"
#include "key/key_spec.hpp"
#include "store/message/dead_letter.hpp"
#include "store/outside/answer_claims.hpp"

namespace hapax::flow {
namespace {

using store::Phase;

// So many duplicates one after the other are a flood.
constexpr int kFlood = 2;

std::string why_halted(const Decision& decision, const Route& route, const store::Fault& fault) {
  if (decision.reason == "statement_refused")
    return "PostgreSQL refuses a statement of handler \"" + route.handler.name +
           "\", and would for every message: a table, column, function, library or right is "
           "missing, or the SQL is wrong: " +
           fault.text;
  if (decision.reason == "handler_ended_transaction")
    return "handler \"" + route.handler.name +
           "\" ended hapax's transaction (COMMIT, ROLLBACK, SET CONSTRAINTS or RESET ALL), or left "
           "a stream or pipeline of libpqxx open. Part of its effect may stand alone, so it is not "
           "run again: " +
           fault.text;
  return fault.text;
}

// A replay settled it, so its offset is there. A claim in doubt finds that, and waits for nothing
// else.
bool is_of_a_settled_position(const Attempt& attempt, const store::Fault& fault) {
  return attempt.phase == store::Phase::claim && fault.sqlstate == "23505" &&
         key::is_by_position(attempt.task.route.key);
}

// Does what the policy decides about a run that threw.
Outcome failed(Attempt& attempt, const std::exception_ptr& error) {
  const Task& task = attempt.task;
  const Thrown thrown = thrown_by(error);
  const bool writes_letter = attempt.phase == Phase::account;  // that of a drifted payload
  if (attempt.sent_commit && store::may_have_committed(thrown.fault)) attempt.in_doubt = true;
  if (is_of_a_settled_position(attempt, thrown.fault)) attempt.in_doubt = true;
  const Decision decision =
      decide({.of = Failure::Of::message,
              .phase = attempt.phase,
              .fault = thrown.fault,
              .thrown = thrown.what,
              .session_was_new = attempt.session_was_new,
              .agains = task.agains,
              .outages = task.outages,
              .may_wait = true,
              .letter_bytes = writes_letter ? attempt.letter_bytes() : std::nullopt});
  switch (attempt.session.follow(decision)) {
    case Action::count: return count_run(attempt, thrown.kept(), thrown.after);
    case Action::give_up:
      return give_up(attempt, gave_up("rejected", thrown.fault.text, task.attempts + 1));
    case Action::keep_without_bytes:
      return give_up_without_bytes(
          attempt,
          gave_up("payload_drift", "the key was completed with another payload", task.attempts),
          thrown.fault);
    case Action::run_on_new_session: attempt.session_was_stale = true; break;
    default: break;
  }
  Outcome outcome = ending(decision, thrown.fault, task.attempts);
  if (is_halt(outcome.result)) outcome.detail = why_halted(decision, task.route, thrown.fault);
  return outcome;
}

// The message settles without a transaction of its own, so a separate statement removes its failed
// runs.
void forget_attempts(Attempt& attempt) {
  try {
    if (attempt.session.is_open()) store::forget_attempts(*attempt.session, attempt.source);
  } catch (const store::DatabaseError&) {
    attempt.session.drop();  // `status` lists them until the checkpoint
  }
}

// Decodes a cautious message, and does the rest with what came of that.
Outcome read_late(Attempt& attempt, const std::function<Outcome(Attempt&)>& then) {
  Attempt read(attempt.task.read(), attempt.session, attempt.random);
  read.session_was_new = attempt.session_was_new;  // announcing has opened it
  read.in_doubt = attempt.in_doubt;
  Outcome outcome = then(read);
  attempt.in_doubt = read.in_doubt;
  attempt.session_was_stale = read.session_was_stale;
  return outcome;
}

// The letter takes the key, unless deriving the key was what killed the process last.
Outcome give_up_crashed(Attempt& attempt, int crashes) {
  const Task& task = attempt.task;
  const bool looks_for_key = crashes == task.route.retry.max_crashes;
  if (looks_for_key && task.read)
    return read_late(attempt, [&](Attempt& read) { return give_up_crashed(read, crashes); });
  if (auto waits = unread(task); looks_for_key && waits && !is_settled(waits->result)) {
    waits->crashes = crashes;
    return *std::move(waits);
  }
  if (looks_for_key) name_letter(attempt);
  Outcome outcome = give_up(attempt, gave_up(kCrashed,
                                             "the worker process ended " + std::to_string(crashes) +
                                                 " times while this message ran; it was not run "
                                                 "again",
                                             task.attempts));
  if (outcome.result == Result::duplicate) forget_attempts(attempt);
  // PostgreSQL was away, so the next run tries again. If that run announced the message, one more
  // crash would be counted, and the letter would take no key. So the count goes with the message.
  // If PostgreSQL restarted, the partition starts again without this count, and the letter takes no
  // key.
  if (!is_settled(outcome.result)) outcome.crashes = crashes;
  return outcome;
}

}  // namespace

Outcome Processor::process(const Task& task, Handler& handler, const Next& next) {
  return process(task, task.in_doubt, handler, next);
}

Outcome Processor::process(const Task& task, bool in_doubt, Handler& handler, const Next& next) {
  if (task.breaker != nullptr && task.breaker->is_open()) {
    abandon();
    return held();
  }
  if (task.settled) {
    abandon();
    return Outcome::of(Result::duplicate);
  }
  // This process announced the message before and survived, so that was no crash. Whichever lane
  // has the message now withdraws the announcement.
  if (task.announced) session_.set_announced(task.source(), *task.announced);
  Attempt attempt(task, session_, random_);
  attempt.in_doubt = in_doubt;
  Outcome outcome = process_once(attempt, handler, next);
  // The session is older than a migration of the handler's tables. So the message runs again at
  // once, on a new session. A doubt stays with the message from attempt to attempt, until it is
  // settled.
  if (attempt.session_was_stale) {
    Attempt second(task, session_, random_);
    second.in_doubt = attempt.in_doubt;
    outcome = process_once(second, handler, {});
    attempt.in_doubt = second.in_doubt;
  }
  outcome.in_doubt = attempt.in_doubt;
  if (!is_settled(outcome.result)) outcome.announced = session_.take_announced();
  if (task.breaker != nullptr) task.breaker->learn(outcome);
  return outcome;
}

Outcome Processor::process_once(Attempt& attempt, Handler& handler, const Next& next) {
  const Task& task = attempt.task;
  if (next_claim_ && next_claim_->message != &task.message) abandon();
  std::string why;
  if (!session_.is_reachable(why)) return away(why);
  try {
    if (session_.is_behind_a_loss(task.incarnation)) return later("tail_lost", task.attempts);
  } catch (...) {
    return bookkeeping_failed(attempt, std::current_exception());
  }
  if (task.crashes > 0) return give_up_crashed(attempt, task.crashes);
  if (!task.cautious) return skip_or_run(attempt, handler, next);
  if (auto decided = announce(attempt)) return *decided;
  const auto run = [&](Attempt& of) { return skip_or_run(of, handler, {}); };
  Outcome outcome = task.read ? read_late(attempt, run) : run(attempt);
  if (session_.is_open()) session_.is_reachable(why);
  return outcome;
}

Outcome Processor::skip_or_run(Attempt& attempt, Handler& handler, const Next& next) {
  const Task& task = attempt.task;
  if (task.skip == nullptr) return derive_and_run(attempt, handler, next);
  name_letter(attempt);
  return give_up(attempt, gave_up(kSkipped, *task.skip, task.attempts));
}

// Cautious mode: the announcement commits before the message is decoded and its key derived. So a
// message that kills the process has named itself. After max_crashes it is given up unrun.
std::optional<Outcome> Processor::announce(Attempt& attempt) {
  const Task& task = attempt.task;
  std::optional<int> announced;
  // Set first: if PostgreSQL's answer is lost, the announcement may be written all the same.
  session_.set_announced(attempt.source, task.epoch);
  try {
    announced = store::announce_run(*session_, attempt.source, task.route.handler.name, task.epoch);
  } catch (...) {
    return bookkeeping_failed(attempt, std::current_exception());
  }
  if (!announced) {
    session_.take_announced();  // the announcement there is the other worker's
    return fenced(task);
  }
  const int crashes = *announced - 1;
  if (crashes < task.route.retry.max_crashes) return std::nullopt;
  session_.take_announced();  // it stays in hapax.attempts
  return give_up_crashed(attempt, crashes);
}

Outcome Processor::derive_and_run(Attempt& attempt, Handler& handler, const Next& next) {
  const Task& task = attempt.task;
  const bool is_claimed = next_claim_.has_value();  // then it was found to be one that may run
  if (auto outcome = unread(task))
    return is_settled(outcome->result) ? give_up(attempt, *std::move(outcome)) : *outcome;
  key::Derived derived = next_claim_ ? std::move(next_claim_->identity)
                                     : key::identify(task.route.key, task.message, task.generation);
  if (const auto* refusal = std::get_if<key::Refusal>(&derived))
    return give_up(attempt, gave_up(refusal->reason, refusal->detail, task.attempts));
  if (std::holds_alternative<key::SkippedTombstone>(derived)) return Outcome::of(Result::skipped);
  attempt.identity = std::get<key::Identity>(std::move(derived));
  if (!is_claimed && task.answered == nullptr)
    if (auto refused = violation(task)) return give_up(attempt, *std::move(refused));
  if (task.route.retry.exhausted(task.attempts, task.failing))  // the watchdog ended it, perhaps
    return give_up(
        attempt,
        gave_up(
            "attempts_exhausted",
            "no run is left: the last did not end, its dead letter could not be written then, or "
            "retry was lowered since",
            task.attempts));
  if (task.outages >= kMaxOutages)  // and PostgreSQL was gone each time, so that none was counted
    return count_run(attempt, {store::Fault::Kind::connection, "",
                               "PostgreSQL was lost " + std::to_string(task.outages) +
                                   " times while this message ran"});
  Outcome outcome;
  try {
    outcome = run(attempt, handler, next);
  } catch (...) {
    outcome = failed(attempt, std::current_exception());
  }
  session_.clean();
  if (is_settled(outcome.result)) batch_limit_.passed(1);
  duplicates_in_a_row_ = outcome.result == Result::duplicate ? duplicates_in_a_row_ + 1 : 0;
  if (task.is_in_attempts() && outcome.result == Result::duplicate) forget_attempts(attempt);
  return outcome;
}

// The way of a message through PostgreSQL, in one transaction. Each exception leaves through
// process(), and the transaction's destructor rolls back.
Outcome Processor::run(Attempt& attempt, Handler& handler, const Next& next) {
  const Task& task = attempt.task;
  store::ClaimRequest request = attempt.request();
  request.prepares_late = task.agains > 0;
  if (task.answered != nullptr) return book(attempt, request, handler, next);
  if (is_known_duplicate(attempt, request, handler)) return Outcome::of(Result::duplicate);
  std::optional<NextClaim> claimed = std::exchange(next_claim_, std::nullopt);
  auto opened =
      claimed ? std::move(claimed->transaction) : std::make_unique<store::Transaction>(*session_);
  store::Transaction& transaction = *opened;
  const store::Claim claim = claimed ? store::claim(transaction, request, std::move(claimed->taken))
                                     : store::claim(transaction, request);
  if (auto decided = judge(attempt, request, claim, transaction)) {
    const bool hook = decided->result == Result::duplicate && handler.wants_duplicates() &&
                      !request.by_position;  // no row counts it
    return hook ? run_duplicate(attempt, request, claim.nonce, transaction, handler) : *decided;
  }
  if (task.route.outside) return to_call("free", task.attempts, kKeyHeldWait);
  crash_point("claimed");
  return run_claimed(attempt, std::move(opened), request, claim.nonce, handler, next);
}

// The other side's answer is committed. `book` is to it what the handler is on other routes.
Outcome Processor::book(Attempt& attempt, const store::ClaimRequest& request, Handler& handler,
                        const Next& next) {
  auto transaction = std::make_unique<store::Transaction>(*session_);
  const store::AnswerClaim claim =
      store::claim_answered(*transaction, request, attempt.task.answered->token);
  if (claim.lost) return to_call("superseded", attempt.task.attempts, kKeyHeldWait);
  if (claim.fenced) return later("fenced", attempt.task.attempts);
  crash_point("booking");
  return run_claimed(attempt, std::move(transaction), request, claim.nonce, handler, next);
}

// The handler and the completion. Precondition: the key is ours, in this transaction.
Outcome Processor::run_claimed(Attempt& attempt, std::unique_ptr<store::Transaction> opened,
                               const store::ClaimRequest& request, const std::string& nonce,
                               Handler& handler, const Next& next) {
  const Task& task = attempt.task;
  store::Transaction& transaction = *opened;
  attempt.phase = Phase::handler;
  const traces::Carried carried(task.message, task.trace);
  Publisher publisher(task.route.publishing.get(), task.route.key.scope, *attempt.identity, carried,
                      attempt.source);
  if (!request.prepares_late) publisher.prepare(*session_);
  LentContext context(transaction, carried, task.route.max_result_bytes, &publisher,
                      &request.identity, request.by_position);
  const auto began = Clock::now();
  try {
    const Watched watched(watch_, task, began);
    handle(handler, task.message, task.answered == nullptr ? nullptr : &task.answered->answer,
           context);
  } catch (...) {
    store::refuse_ended(transaction, nonce);
    throw;
  }
  const auto handler_time = Clock::now() - began;
  crash_point("handled");
  // If a statement that the handler deferred fails, the handler failed, though hapax sends that
  // statement with the completion.
  attempt.phase = transaction.has_pending() ? Phase::handler : Phase::complete;
  if (task.is_in_attempts()) store::add_forget_attempts(transaction, attempt.source);
  if (task.answered != nullptr && task.has_letter)
    store::add_end_of_letter(transaction, attempt.source);
  store::add_published(transaction, publisher.records());
  attempt.sent_commit = true;
  next_claim_ = complete(attempt, std::move(opened), request, nonce, context.stored_result(), next);
  publisher.committed();
  crash_point("committed");
  return {.result = Result::completed, .handler_time = handler_time};
}

Outcome Processor::run_duplicate(Attempt& attempt, const store::ClaimRequest& request,
                                 const std::string& nonce, store::Transaction& transaction,
                                 Handler& handler) {
  const Task& task = attempt.task;
  std::optional<std::string> stored;
  if (!store::count_duplicate(transaction, request, stored)) return Outcome::of(Result::again);
  attempt.phase = Phase::handler;
  const traces::Carried carried(task.message, task.trace);
  LentContext context(transaction, carried, task.route.max_result_bytes, nullptr,
                      &request.identity);
  try {
    const Watched watched(watch_, task, Clock::now());
    handler.on_duplicate(task.message, StoredResult(std::move(stored)), context);
  } catch (...) {
    store::refuse_ended(transaction, nonce);
    throw;
  }
  attempt.phase = transaction.has_pending() ? Phase::handler : Phase::complete;
  store::complete(transaction, request, nonce, std::nullopt);
  return Outcome::of(Result::duplicate);
}

// If Kafka delivers settled messages again, many duplicates follow each other. After some of them
// it is cheaper to read the key before claiming it.
bool Processor::is_known_duplicate(const Attempt& attempt, const store::ClaimRequest& request,
                                   const Handler& handler) {
  if (next_claim_ || duplicates_in_a_row_ < kFlood || handler.wants_duplicates() ||
      request.by_position)
    return false;
  const auto holder = store::read_holder(*session_, request);
  return holder && holder->status == "completed" && is_same(attempt.task, request, *holder);
}

}  // namespace hapax::flow
