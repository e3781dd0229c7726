// What becomes of calls that came back.
#include "flow/crash_point.hpp"
#include "flow/verdicts.hpp"
#include "observe/log.hpp"
#include "worker/check.hpp"
#include "worker/outside_calls.hpp"

namespace hapax::worker {

using flow::Outcome;
using outside::Ended;
using outside::Then;

namespace {

constexpr std::chrono::milliseconds kCountUnknownAgain{5'000};
constexpr std::chrono::milliseconds kAccountAgain{1'000};

}  // namespace

// Accounts for the calls that came back: first the answers, in one transaction.
void OutsideCalls::keep_ended() {
  collect_ended();
  keep_answers();
  for (auto flight = done_.begin(); flight != done_.end();) {
    if (Clock::now() < flight->account_at) {
      ++flight;
      continue;
    }
    HAPAX_CHECK(flight->end.how != Ended::How::answered, "an answer is thrown away");
    try {
      Outcome outcome = account(*flight);
      flight = settle(done_, flight, std::move(outcome));
    } catch (const store::DatabaseError& error) {
      if (error.fault().kind != store::Fault::Kind::sql) throw;
      flight->account_at = Clock::now() + kAccountAgain;  // the others need not wait for it
      throw;
    }
  }
}

void OutsideCalls::collect_ended() {
  Flights ended;
  in_flight_.collect(ended);
  for (const Flight& flight : ended) count(flight);
  done_.splice(done_.end(), ended);
}

void OutsideCalls::count(const Flight& ended) {
  using How = Ended::How;
  const How how = ended.end.how;
  const auto shown = how == How::answered  ? observe::CallEnded::answered
                     : how == How::refused ? observe::CallEnded::refused
                     : how == How::failed  ? observe::CallEnded::failed
                     : how == How::unknown ? observe::CallEnded::unknown
                                           : observe::CallEnded::not_called;
  const Clock::time_point began = ended.began;
  metrics_.at(ended.route())
      .ended(shown, began == Clock::time_point{} ? Clock::duration{} : Clock::now() - began);
}

void OutsideCalls::count_unknown() {
  if (Clock::now() < count_again_) return;
  count_again_ = Clock::now() + kCountUnknownAgain;
  for (auto& [route, metrics] : metrics_)
    metrics.unknown(store::count_unknown(*session_, {routes_[route].key.scope}));
}

void OutsideCalls::keep_answers() {
  std::vector<Flight*> answered;
  for (Flight& flight : done_)
    if (flight.end.how == Ended::How::answered) answered.push_back(&flight);
  if (answered.empty()) return;
  const std::vector<bool> kept = keep(answered);
  flow::crash_point("call_answered");
  auto is_kept = kept.begin();
  for (auto flight = done_.begin(); flight != done_.end();) {
    if (flight->end.how != Ended::How::answered) {
      ++flight;
    } else if (*is_kept++) {
      flight->item().answered =
          waiting(flight->route(), flight->taken.token, std::move(flight->end.text));
      flight = pass_to_lane(done_, flight);
    } else {
      observe::log::warning(
          "call_superseded",
          {{"topic", flight->source.topic},
           {"partition", flight->source.partition},
           {"offset", flight->source.offset},
           {"token", flight->taken.token}},
          "a call was answered after another worker had taken its key over (this worker's "
          "lease was over)");
      flight = settle(done_, flight,
                      flow::to_call("superseded", flight->task.attempts, flow::kKeyHeldWait));
    }
  }
}

// Whether each of those that are `answered` after it is kept. One that PostgreSQL cannot keep (too
// large, nested too deep) is `failed` then, and keeps no other one from being kept.
std::vector<bool> OutsideCalls::keep(const std::vector<Flight*>& answered) {
  std::vector<store::KeptAnswer> answers;
  for (const Flight* const flight : answered)
    answers.push_back(
        {flight->identity, flight->task.route.key.scope, flight->taken.token, flight->end.text});
  try {
    return store::keep_answers(*session_, answers);
  } catch (const store::DatabaseError& error) {
    if (!store::is_too_much(error.fault())) throw;
    if (answers.size() == 1) {
      answered.front()->end = outside::not_kept(error.fault().text);
      return {};
    }
  }
  std::vector<bool> kept;
  for (Flight* const flight : answered)
    for (const bool is_kept : keep({flight})) kept.push_back(is_kept);
  return kept;
}

// It counts as waiting until a lane has booked it, or it is dropped.
flow::Answered OutsideCalls::waiting(std::size_t route, std::int64_t token,
                                     std::string answer) const {
  ++*answers_[route];
  return {token, std::move(answer), {nullptr, [counted = answers_[route]](const void* /*none*/) {
                                       --*counted;
                                     }}};
}

// What becomes of a message whose call was not answered. Throws: DatabaseError.
Outcome OutsideCalls::account(Flight& ended) {
  const flow::Task& task = ended.task;
  const Ended::How how = ended.end.how;
  const bool uncalled = how == Ended::How::not_called || how == Ended::How::not_begun;
  Then then = outside::after(ended.rules(), how, ended.taken.calls, false);
  int attempts = task.attempts;
  if (then == Then::put_back) {
    store::give_call_back(*session_, ended.claim(), ended.taken.token, true);
    return flow::to_call("lease", attempts, flow::kKeyHeldWait);
  }
  if (then == Then::try_again) {
    std::uniform_real_distribution<double> jitter(0.0, 1.0);
    const auto wait = task.route.retry.wait(attempts + 1, jitter(random_), ended.end.after);
    if (!ended.failed)
      ended.failed = store::record_attempt(*session_, {.source = ended.source,
                                                       .error = ended.end.text,
                                                       .sqlstate = {},
                                                       .handler = task.route.handler.name,
                                                       .wait = wait});
    const store::FailedRuns& runs = *ended.failed;
    attempts = runs.count;
    if (!task.route.retry.exhausted(runs.count, runs.lasting)) {
      store::give_call_back(*session_, ended.claim(), ended.taken.token, uncalled);
      return {.result = flow::Result::retry,
              .reason = "failed",
              .detail = ended.end.text,
              .wait = wait,
              .attempts = runs.count,
              .to_call = true};
    }
    then = outside::after(ended.rules(), how, ended.taken.calls, true);
  }
  if (then == Then::refuse)
    return end(ended, store::CallEnd::refused, "rejected", ended.end.text, attempts + 1);
  if (then == Then::reject)
    return end(ended, store::CallEnd::uncalled, "rejected", ended.end.text, attempts + 1);
  if (then == Then::fail)
    return end(ended, store::CallEnd::uncalled, "attempts_exhausted", ended.end.text, attempts);
  return end(ended, store::CallEnd::unknown, "outcome_unknown",
             "the outcome of the call is unknown: " + ended.end.text, attempts);
}

Outcome OutsideCalls::end(Flight& ended, store::CallEnd how, const char* reason, std::string why,
                          int attempts) {
  flow::Attempt attempt(ended.task, session_, random_);
  attempt.identity = ended.identity;
  Outcome outcome = flow::gave_up(reason, std::move(why), attempts);
  const auto kept = [&] {
    return store::end_call(*session_, ended.claim(), ended.taken.token, how,
                           flow::letter_of(attempt, outcome));
  };
  std::optional<std::int64_t> letter;
  try {
    letter = kept();
  } catch (const store::DatabaseError& error) {
    if (!store::is_too_much(error.fault())) throw;
    attempt.keep_bytes = false;
    outcome.detail += " (the message itself could not be kept: " + error.fault().text + ")";
    letter = kept();
  }
  if (!letter) return flow::to_call("superseded", ended.task.attempts, flow::kKeyHeldWait);
  outcome.dead_letter = *letter;
  return outcome;
}

}  // namespace hapax::worker
