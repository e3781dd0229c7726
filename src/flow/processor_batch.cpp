// Several messages in one transaction, with the outcomes of one by one.
//
// The messages of a lane's take run as segments, in order. A segment is one transaction: one claim
// for all its keys, the handlers in order, one seal, one COMMIT. All or nothing; when it is
// nothing, what stood in the way runs alone and the rest is tried again. Every round settles
// something, sets one apart, halves the segment or makes batches take turns, so it ends.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "flow/crash_point.hpp"
#include "flow/lent_context.hpp"
#include "flow/processor.hpp"
#include "flow/verdicts.hpp"
#include "store/claim_batch.hpp"

namespace hapax::flow {
namespace {

using store::FailureClass;
using store::Phase;

// Longer than it takes to serve a halt.
constexpr std::chrono::hours kUntilHalted{24};

// No handler of the segment runs.
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// What only process(task) can do right: history, a guard, an operator's word.
bool must_run_alone(const Task& task) {
  return task.cautious || task.skip != nullptr || task.is_in_attempts() || task.outages > 0 ||
         task.message.offset() < task.guard_below;
}

std::string name_of(const Message& message) {
  return "partition " + std::to_string(message.partition()) + " offset " +
         std::to_string(message.offset());
}

bool has_key_of(const key::Identity& one, const key::Identity& other) {
  return one.key == other.key && one.tenant == other.tenant;
}

// In the order in which every process takes locks; those of one key as they came.
std::vector<std::size_t> by_key(std::span<const std::optional<key::Identity>> identities) {
  std::vector<std::size_t> order(identities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t left, std::size_t right) {
    return std::tie(identities[left]->key, identities[left]->tenant, left) <
           std::tie(identities[right]->key, identities[right]->tenant, right);
  });
  return order;
}

// Neither ours nor a plain duplicate. What is one as the same message again, whatever its
// fingerprint, says nothing about the others of its key, which are `repeated`.
bool stands_in_the_way(const store::BatchClaim::Key& key, const store::ClaimRequest& request,
                       bool repeated, const Handler& handler) {
  if (key.ours) return false;
  if (!key.holder || key.holder->status != "completed" || handler.wants_duplicates()) return true;
  return key.holder->fingerprint != request.identity.fingerprint &&
         (repeated || !key.holder->is(request.source));
}

}  // namespace

std::vector<Outcome> Processor::process(std::span<const Job> jobs) {
  abandon();
  std::vector<Outcome> outcomes(jobs.size(), Outcome::of(Result::waits));
  std::vector<std::optional<key::Identity>> identities(jobs.size());  // nothing: runs alone
  std::vector<std::optional<FailedRun>> failed_runs(jobs.size());     // these did already
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Task& task = jobs[i].task;
    if (must_run_alone(task)) continue;
    auto derived = key::identify(task.route.key, task.message, task.generation);
    if (auto* identity = std::get_if<key::Identity>(&derived)) identities[i] = std::move(*identity);
  }
  std::size_t size = std::min(batch_limit_.value(), jobs.size());
  Breaker* const breaker = jobs.empty() ? nullptr : jobs.front().task.breaker;
  for (std::size_t at = 0; at < jobs.size();) {
    if (breaker != nullptr && breaker->is_open()) {
      std::fill(outcomes.begin() + static_cast<std::ptrdiff_t>(at), outcomes.end(), held());
      return outcomes;
    }
    const bool behind_unsettled = at > 0 && jobs[at].order_key == jobs[at - 1].order_key &&
                                  !is_settled(outcomes[at - 1].result);
    if (behind_unsettled) {
      ++at;  // waits, as everything of its order key does
      continue;
    }
    std::size_t end = at + 1;
    while (identities[at] && end < jobs.size() && end - at < size && identities[end]) ++end;
    if (end - at == 1) {
      outcomes[at] = failed_runs[at] ? count_run_of_batch(jobs[at], *failed_runs[at])
                                     : process(jobs[at].task, *jobs[at].handler);
      if (outcomes[at].result == Result::outage) return outcomes;
      ++at;
      continue;
    }
    const Attempt attempt =
        try_segment(jobs.subspan(at, end - at), Identities(identities).subspan(at, end - at),
                    std::span(outcomes).subspan(at, end - at));
    switch (attempt.tried) {
      case Tried::done:
        batch_limit_.passed(end - at);
        if (breaker != nullptr)
          for (std::size_t i = at; i < end; ++i) breaker->learn(outcomes[i]);
        at = end;
        break;
      case Tried::some_alone:
        for (const std::size_t alone : attempt.alone) {
          identities[at + alone].reset();
          failed_runs[at + alone] = attempt.failed_run;
        }
        break;
      case Tried::in_the_way: size = std::min(batch_limit_.value(), end - at); break;
      case Tried::smaller: size = std::max<std::size_t>(1, (end - at) / 2); break;
      case Tried::given_up:
        // Whichever of them it was: none runs again before the halt is served.
        if (attempt.verdict.of_batch)
          for (std::size_t i = at; i < end; ++i) outcomes[i].wait = kUntilHalted;
        outcomes[at] = attempt.verdict;
        for (const std::size_t lost : attempt.alone) outcomes[at + lost].lost_in_handler = true;
        return outcomes;
    }
  }
  return outcomes;
}

Processor::Attempt Processor::try_segment(std::span<const Job> jobs, Identities identities,
                                          std::span<Outcome> outcomes) {
  std::string why;
  if (!session_.is_reachable(why))
    return {Tried::given_up, {}, {.result = Result::outage, .reason = "postgres", .detail = why}};
  std::size_t running = kNone;
  Attempt attempt;
  try {
    phase_ = Phase::claim;
    for (std::size_t i = 0; i < jobs.size(); ++i)
      if (session_.is_behind_a_loss(jobs[i].task.incarnation)) return {Tried::some_alone, {i}};
    attempt = run_segment(jobs, identities, outcomes, running);
  } catch (...) {
    attempt = segment_failed(std::current_exception(), jobs, running);
  }
  if (attempt.tried != Tried::done)
    std::ranges::fill(outcomes, Outcome::of(Result::waits));  // nothing took effect
  session_.clean();
  return attempt;
}

// `running`: which one's handler runs, for whoever catches.
Processor::Attempt Processor::run_segment(std::span<const Job> jobs, Identities identities,
                                          std::span<Outcome> outcomes, std::size_t& running) {
  const Route& route = jobs.front().task.route;
  std::vector<std::size_t> claimed;  // whose keys: the first message of each
  std::vector<bool> repeated;        // and whether another one of it follows
  std::vector<store::Source> sources;
  sources.reserve(jobs.size());
  std::vector<store::ClaimRequest> requests;
  for (const std::size_t i : by_key(identities)) {
    const key::Identity& identity = *identities[i];
    if (!claimed.empty() && has_key_of(identity, *identities[claimed.back()])) {
      // A duplicate of the first, which settles with it.
      if (identities[claimed.back()]->fingerprint != identity.fingerprint ||
          jobs[i].handler->wants_duplicates())
        return {Tried::some_alone, {i}};
      repeated.back() = true;
      continue;
    }
    claimed.push_back(i);
    repeated.push_back(false);
    sources.push_back(source_of(jobs[i].task));
    requests.push_back(
        {identity, route.key.scope, sources.back(), route.retention, false, jobs[i].task.epoch});
  }

  phase_ = Phase::claim;
  store::Transaction transaction(*session_);
  const store::BatchClaim claim =
      store::claim_batch(transaction, requests, batch_limit_.one_at_a_time());
  std::ranges::fill(outcomes, Outcome::of(Result::duplicate));
  std::vector<std::size_t> alone;
  for (std::size_t n = 0; n < claimed.size(); ++n)
    if (stands_in_the_way(claim.keys[n], requests[n], repeated[n], *jobs[claimed[n]].handler))
      alone.push_back(claimed[n]);
  if (!alone.empty()) return {Tried::some_alone, std::move(alone)};
  std::vector<std::optional<std::size_t>> ours(jobs.size());  // the number of their request
  for (std::size_t n = 0; n < claimed.size(); ++n) {
    if (!claim.keys[n].ours) continue;
    ours[claimed[n]] = n;
    outcomes[claimed[n]].result = Result::completed;
  }
  if (std::ranges::none_of(claim.keys, &store::BatchClaim::Key::ours)) return {};  // all known
  crash_point("batch_claimed");

  const Results results =
      run_handlers(jobs, outcomes, ours, requests, claim.nonce, transaction, running);
  crash_point("batch_handled");
  running = kNone;
  phase_ = transaction.has_pending() ? Phase::handler : Phase::complete;
  store::add_results(transaction, requests, results);
  store::seal(transaction, claim.nonce, route.durability);
  crash_point("batch_committed");
  return {};
}

// The handlers of the keys that are ours, in order. Returns the results that were not yet sent.
Processor::Results Processor::run_handlers(std::span<const Job> jobs, std::span<Outcome> outcomes,
                                           std::span<const std::optional<std::size_t>> ours,
                                           std::span<const store::ClaimRequest> requests,
                                           const std::string& nonce,
                                           store::Transaction& transaction, std::size_t& running) {
  const std::size_t max_result_bytes = jobs.front().task.route.max_result_bytes;
  Results results;
  std::size_t result_bytes = 0;
  auto now = Clock::now();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!ours[i]) continue;
    running = i;
    const Job& job = jobs[i];
    phase_ = Phase::handler;
    LentContext context(transaction, max_result_bytes);
    try {
      const Watched watched(watch_, job.task, now);
      job.handler->handle(job.task.message, context);
      if (context.stored_result()) {
        results.emplace_back(*ours[i], *context.stored_result());
        result_bytes += context.stored_result()->size();
      }
      if (result_bytes > LentContext::kMaxDeferredBytes) {
        store::add_results(transaction, requests, std::exchange(results, {}));
        transaction.flush();
        result_bytes = 0;
      }
    } catch (...) {
      store::refuse_ended(transaction, nonce);
      throw;
    }
    const auto began = std::exchange(now, Clock::now());
    outcomes[i].handler_time = now - began;
  }
  return results;
}

// If a handler failed by itself (Retry, or an exception that is not PostgreSQL's), its run in the
// batch counts. Run again at once, it would have a run more than max_attempts, and sooner than its
// Retry asks for. Nothing: the message runs alone first. That is so for a last attempt, because its
// neighbours may be the cause.
std::optional<Processor::FailedRun> Processor::failed_run_of(const Task& task,
                                                             const std::exception_ptr& error) {
  const store::Fault fault = store::fault_of(error);
  if (fault.kind != store::Fault::Kind::other || task.route.retry.exhausted(1, {}))
    return std::nullopt;
  try {
    std::rethrow_exception(error);
  } catch (const Reject&) {
    return std::nullopt;
  } catch (const Retry& retry) {
    return FailedRun{fault, retry.after()};
  } catch (...) {
    return FailedRun{fault, std::nullopt};
  }
}

Outcome Processor::count_run_of_batch(const Job& job, const FailedRun& run) {
  std::string why;
  if (!session_.is_reachable(why))
    return {.result = Result::outage, .reason = "postgres", .detail = std::move(why)};
  const auto derived = key::identify(job.task.route.key, job.task.message, job.task.generation);
  return count_attempt(job.task, std::get<key::Identity>(derived), run.fault, run.after);
}

// What to do about a segment that rolled back. Whose failure it is counts only where it runs alone.
Processor::Attempt Processor::segment_failed(const std::exception_ptr& error,
                                             std::span<const Job> jobs, std::size_t running) {
  const bool in_one = phase_ == Phase::handler && running != kNone;
  const store::Fault fault = store::fault_of(error);
  Outcome verdict{.detail = fault.text, .sqlstate = fault.sqlstate};
  switch (store::classify(phase_, fault)) {
    case FailureClass::again:
    case FailureClass::busy: batch_limit_.contended(jobs.size()); return {Tried::in_the_way};
    case FailureClass::attempt:
      // A row's lock that another batch holds to its end, where one by one would hold it for a
      // moment: as any other contention, until batches take turns.
      if (fault.sqlstate == "55P03" && !batch_limit_.one_at_a_time()) {
        batch_limit_.contended(jobs.size());
        return {Tried::in_the_way};
      }
      [[fallthrough]];
    case FailureClass::refused:
      if (in_one)
        return {Tried::some_alone, {running}, {}, failed_run_of(jobs[running].task, error)};
      return {Tried::smaller};
    case FailureClass::halt: return {Tried::smaller};
    case FailureClass::again_reconnected:
      session_.drop();
      verdict.result = Result::again;
      verdict.reason = "reconnect";
      verdict.lost_in_handler = true;  // so that it runs alone the next time
      return {Tried::given_up, {}, verdict};
    case FailureClass::in_doubt:
    case FailureClass::outage: {
      session_.drop();
      const bool servers = store::is_the_servers(fault);
      const bool in_claim = phase_ == Phase::claim;
      std::string why;
      if (!servers && session_.is_reachable(why)) {
        if (in_one) return {Tried::some_alone, {running}};
        // PostgreSQL is there: one of them may be the reason, or all together took too long.
        // Whether they were committed, the claim tells.
        if (!in_claim || !fault.sqlstate.empty()) return {Tried::smaller};
      }
      verdict.result = Result::outage;
      verdict.reason = "postgres";
      if (!servers && in_one) return {Tried::given_up, {running}, verdict};
      verdict.lost_in_handler = !servers && !in_claim;
      return {Tried::given_up, {}, verdict};
    }
    case FailureClass::transaction_ended:
      session_.drop();
      verdict.result = Result::halt_route;
      verdict.reason = "handler_ended_transaction";
      verdict.of_batch = true;
      verdict.detail =
          "a handler ended the transaction of a batch (COMMIT, ROLLBACK, SET CONSTRAINTS or RESET "
          "ALL); part of its effect may stand alone. With routes[].batch 1 the next such halt "
          "names its message. The batch begins with " +
          name_of(jobs.front().task.message) +
          (running == kNone ? ""
                            : ", and the last that ran is " + name_of(jobs[running].task.message)) +
          ": " + fault.text;
      return {Tried::given_up, {}, verdict};
  }
  return {Tried::smaller};
}

}  // namespace hapax::flow
