// Several messages in one transaction, with the outcomes of one by one.
//
// The messages that a lane took run as segments, in order. A segment is one transaction. If it
// rolls back, the message that stopped it runs alone, and the rest runs again. Each round settles
// messages, sets one apart, halves the segment or makes batches take turns, so the rounds end.
#include <algorithm>

#include "flow/account.hpp"
#include "flow/processor.hpp"
#include "flow/segment.hpp"
#include "flow/verdicts.hpp"

namespace hapax::flow {
namespace {

using Then = Tried::Then;

// Longer than it takes to serve a halt.
constexpr std::chrono::hours kUntilHalted{24};

// Only process(task) handles these: a history of runs, a guard, an operator's decision, or a call
// that was not answered. What met a locked row alone would make a batch wait for that row, too.
bool must_run_alone(const Task& task) {
  return (task.route.outside && task.answered == nullptr) || task.cautious || task.crashes > 0 ||
         task.skip != nullptr || task.is_in_attempts() || task.outages > 0 || task.agains > 0 ||
         task.settled || task.in_doubt || task.may_be_known() || unread(task);
}

using Identities = std::vector<std::optional<key::Identity>>;

// Nothing for a message that must run alone.
Identities identities_of(std::span<const Job> jobs) {
  Identities identities(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Task& task = jobs[i].task;
    if (must_run_alone(task)) continue;
    auto derived = key::identify(task.route.key, task.message, task.generation);
    auto* const identity = std::get_if<key::Identity>(&derived);
    if (identity == nullptr) continue;
    if (task.answered != nullptr || !violation(task)) identities[i] = std::move(*identity);
  }
  return identities;
}

// The end of the segment that begins at `at`: before the next message that must run alone, and
// after `size` messages at most.
std::size_t segment_end(const Identities& identities, std::size_t at, std::size_t size) {
  std::size_t end = at + 1;
  while (identities[at] && end < identities.size() && end - at < size && identities[end]) ++end;
  return end;
}

// A claimed key would show whether the transaction was committed. For a position the message must
// run alone, which asks for its offset.
void doubt(std::span<Outcome> outcomes, std::span<std::optional<key::Identity>> identities) {
  for (Outcome& outcome : outcomes) outcome.in_doubt = true;
  for (auto& identity : identities) identity.reset();
}

// What is in doubt stays so until it is settled.
void set(Outcome& outcome, Outcome made) {
  made.in_doubt = made.in_doubt || outcome.in_doubt;
  outcome = std::move(made);
}

void gave_up(const Tried& tried, std::span<Outcome> outcomes) {
  // None of them runs again before the halt is served, because any may be the cause.
  if (tried.verdict.of_batch)
    for (Outcome& outcome : outcomes) outcome.wait = kUntilHalted;
  set(outcomes.front(), tried.verdict);
  if (tried.lost_in) outcomes[*tried.lost_in].lost_in_handler = true;
}

}  // namespace

std::vector<Outcome> Processor::process(std::span<const Job> jobs) {
  abandon();
  std::vector<Outcome> outcomes(jobs.size(), Outcome::of(Result::waits));
  Identities identities = identities_of(jobs);
  std::vector<std::optional<Thrown>> failed_runs(jobs.size());  // of those that failed in a segment
  std::size_t size = std::min(batch_limit_.value(), jobs.size());
  Breaker* const breaker = jobs.empty() ? nullptr : jobs.front().task.breaker;
  for (std::size_t at = 0; at < jobs.size();) {
    if (breaker != nullptr && breaker->is_open()) {
      for (std::size_t i = at; i < outcomes.size(); ++i) set(outcomes[i], held());
      return outcomes;
    }
    const bool behind_unsettled = at > 0 && jobs[at].order_key == jobs[at - 1].order_key &&
                                  !is_settled(outcomes[at - 1].result);
    if (behind_unsettled) {
      ++at;  // waits, because an earlier message of its order key is not settled
      continue;
    }
    const std::size_t end = segment_end(identities, at, size);
    if (end - at == 1) {
      const bool in_doubt = jobs[at].task.in_doubt || outcomes[at].in_doubt;
      set(outcomes[at], run_alone(jobs[at], failed_runs[at], in_doubt));
      if (outcomes[at].result == Result::outage) return outcomes;
      ++at;
      continue;
    }
    const Tried tried =
        Segment({.session = session_,
                 .watch = watch_,
                 .takes_turns = batch_limit_.one_at_a_time(),
                 .jobs = jobs.subspan(at, end - at),
                 .identities = Segment::Identities(identities).subspan(at, end - at),
                 .outcomes = std::span(outcomes).subspan(at, end - at)})
            .run();
    if (tried.in_doubt)
      doubt(std::span(outcomes).subspan(at, end - at), std::span(identities).subspan(at, end - at));
    switch (tried.then) {
      case Then::done:
        batch_limit_.passed(end - at);
        if (breaker != nullptr)
          for (std::size_t i = at; i < end; ++i) breaker->learn(outcomes[i]);
        at = end;
        break;
      case Then::some_alone:
        for (const std::size_t alone : tried.alone) {
          identities[at + alone].reset();
          failed_runs[at + alone] = tried.failed_run;
        }
        break;
      case Then::again:
        batch_limit_.contended(end - at);
        size = std::min(batch_limit_.value(), end - at);
        break;
      case Then::halves: size = std::max<std::size_t>(1, (end - at) / 2); break;
      case Then::given_up:
        gave_up(tried, std::span(outcomes).subspan(at, end - at));
        return outcomes;
    }
  }
  return outcomes;
}

Outcome Processor::run_alone(const Job& job, const std::optional<Thrown>& failed_run,
                             bool in_doubt) {
  return failed_run ? count_run_of_batch(job, *failed_run, in_doubt)
                    : process(job.task, in_doubt, *job.handler, {});
}

// If the message ran again at once, it would have one run more than its route allows.
Outcome Processor::count_run_of_batch(const Job& job, const Thrown& thrown, bool in_doubt) {
  Attempt attempt(job.task, session_, random_);
  attempt.in_doubt = in_doubt;
  if (std::string why; !session_.is_reachable(why)) return away(std::move(why));
  attempt.identity = std::get<key::Identity>(
      key::identify(job.task.route.key, job.task.message, job.task.generation));
  Outcome outcome = count_run(attempt, thrown.kept(), thrown.after);
  outcome.in_doubt = attempt.in_doubt;
  return outcome;
}

}  // namespace hapax::flow
