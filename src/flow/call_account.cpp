#include "flow/call_account.hpp"

#include <random>

#include "flow/crash_point.hpp"
#include "flow/verdicts.hpp"
#include "observe/log.hpp"
#include "outside/steps.hpp"

namespace hapax::flow {
namespace {

using outside::Ended;
using outside::Step;
using outside::Then;
using store::CallEnd;

Outcome end_call(Attempt& attempt, std::int64_t token, CallEnd how, const char* reason,
                 std::string why, int attempts) {
  heed_steps(*attempt.session, attempt.request(), token, how, why);
  Outcome outcome = gave_up(reason, std::move(why), attempts);
  const auto kept = [&] {
    return store::end_call(*attempt.session, attempt.request(), token, how,
                           letter_of(attempt, outcome));
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
  if (!letter) return to_call("superseded", attempt.task.attempts, kKeyHeldWait);
  crash_point("call_given_up");
  outcome.dead_letter = *letter;
  return outcome;
}

}  // namespace

void heed_steps(store::Session& session, const store::ClaimRequest& request, std::int64_t token,
                CallEnd& end, std::string& why) {
  if (end == CallEnd::unknown) return;  // `hapax outside list` shows the steps
  const auto steps = store::read_steps(session, request.identity, request.scope, token);
  if (!steps || steps->answers.empty()) return;
  if (end == CallEnd::uncalled) end = CallEnd::resting;
  why += " (steps that are done: " + outside::names_of(*steps) + ")";
}

void log_superseded(store::Session& session, const store::ClaimRequest& request, std::int64_t token,
                    const std::string* answer) {
  const auto holder = store::read_holder(session, request);
  const bool is_forgotten = !holder;
  const bool is_unknown = holder && holder->status == "unknown";
  observe::log::warning(
      is_forgotten ? "call_forgotten" : "call_superseded",
      {{"topic", request.source.topic},
       {"partition", request.source.partition},
       {"offset", request.source.offset},
       {"token", token},
       {"answer", answer ? std::optional<std::string_view>(*answer) : std::nullopt}},
      is_forgotten
          ? "a call was answered, and PostgreSQL has lost its key (a failover or a restore). The "
            "answer is not kept; with log.error_text it is shown here"
      : is_unknown
          ? "a call was answered after it was given up on as unknown. The answer is kept for the "
            "operator, unless an earlier one is there: `hapax outside list`"
          : "a call was answered after another worker had taken its key over (this worker's "
            "lease was over), or after an operator had decided about it. The answer is not kept; "
            "with log.error_text it is shown here");
}

std::variant<Step, Outcome> next_step(Attempt& attempt, const store::TakenCall& taken,
                                      const outside::History& history) {
  const Task& task = attempt.task;
  const outside::Plan plan =
      outside::plan(*task.route.outside, history, task.route.retry.max_crashes);
  if (plan.step == Step::book) return Step::book;
  if (plan.step == Step::give_up)
    return end_call(attempt, taken.token, CallEnd::unknown, "outcome_unknown",
                    std::string(plan.why), task.attempts);
  if (!task.route.retry.exhausted(task.attempts, task.failing)) return plan.step;
  // The process ended between the last attempt and its dead letter, or retry was lowered since.
  const bool never_called = history.calls <= 1;
  return end_call(attempt, taken.token, never_called ? CallEnd::uncalled : CallEnd::unknown,
                  never_called ? "attempts_exhausted" : "outcome_unknown", "no attempt is left",
                  task.attempts);
}

Outcome account_for_call(Attempt& attempt, const store::TakenCall& taken, const Ended& ended,
                         std::optional<store::FailedRuns>& failed) {
  const Task& task = attempt.task;
  const bool uncalled = ended.how == Ended::How::not_called || ended.how == Ended::How::not_begun;
  const config::Outside& rules = *task.route.outside;
  Then then = outside::after(rules, ended, taken.calls, false);
  int attempts = task.attempts;
  if (then == Then::put_back) {
    store::give_call_back(*attempt.session, attempt.request(), taken.token, true);
    return to_call("lease", attempts, kKeyHeldWait);
  }
  if (then == Then::try_again) {
    std::uniform_real_distribution<double> jitter(0.0, 1.0);
    const auto wait = task.route.retry.wait(attempts + 1, jitter(attempt.random), ended.after);
    if (!failed)
      failed = store::record_attempt(*attempt.session, {.source = attempt.source,
                                                        .error = ended.text,
                                                        .sqlstate = {},
                                                        .handler = task.route.handler.name,
                                                        .wait = wait,
                                                        .epoch = task.epoch});
    if (!failed) {  // another worker has the partition, and goes on by `repeat`
      store::give_call_back(*attempt.session, attempt.request(), taken.token, uncalled);
      return to_call("fenced", attempts, kKeyHeldWait);
    }
    attempts = failed->count;
    if (!task.route.retry.exhausted(failed->count, failed->lasting)) {
      store::give_call_back(*attempt.session, attempt.request(), taken.token, uncalled);
      return {.result = Result::retry,
              .reason = "failed",
              .detail = ended.text,
              .wait = wait,
              .attempts = attempts,
              .to_call = true};
    }
    then = outside::after(rules, ended, taken.calls, true);
  }
  const auto end = [&](CallEnd how, const char* reason, const std::string& why, int runs) {
    return end_call(attempt, taken.token, how, reason, why, runs);
  };
  if (then == Then::refuse) return end(CallEnd::refused, "rejected", ended.text, attempts + 1);
  if (then == Then::reject) return end(CallEnd::uncalled, "rejected", ended.text, attempts + 1);
  if (then == Then::fail) return end(CallEnd::uncalled, "attempts_exhausted", ended.text, attempts);
  return end(CallEnd::unknown, "outcome_unknown",
             "the outcome of the call is unknown: " + ended.text, attempts);
}

}  // namespace hapax::flow
