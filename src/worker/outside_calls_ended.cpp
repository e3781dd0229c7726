// What becomes of calls that came back.
#include "flow/call_account.hpp"
#include "flow/crash_point.hpp"
#include "flow/verdicts.hpp"
#include "observe/log.hpp"
#include "worker/outside_calls.hpp"

namespace hapax::worker {

using flow::Outcome;
using outside::Ended;

namespace {

constexpr std::chrono::milliseconds kCountUnknownAgain{5'000};
constexpr std::chrono::milliseconds kAccountAgain{1'000};
constexpr std::chrono::milliseconds kKeyLocked{250};  // by a transaction that is about to end
constexpr const char* kLockNotAvailable = "55P03";

}  // namespace

// Accounts for the calls that came back: first the answers, in one transaction. If a call's key is
// locked, that call waits, and holds up no other.
void OutsideCalls::keep_ended() {
  collect_ended();
  keep_answers();
  for (auto flight = done_.begin(); flight != done_.end();) {
    if (flight->end.how == Ended::How::answered || Clock::now() < flight->account_at) {
      ++flight;
      continue;
    }
    renew();  // these may be a thousand
    try {
      flow::Attempt attempt(flight->task, session_, random_, flight->identity);
      Outcome outcome = flow::account_for_call(attempt, flight->taken, flight->end, flight->failed);
      flight = settle(done_, flight, std::move(outcome));
    } catch (const store::DatabaseError& error) {
      if (error.fault().kind != store::Fault::Kind::sql) throw;
      flight->account_at = Clock::now() + kAccountAgain;  // the others need not wait for it
      if (error.sqlstate() == kLockNotAvailable) return;  // calls are taken meanwhile
      throw;
    }
  }
}

void OutsideCalls::collect_ended() {
  Flights ended;
  in_flight_.collect(ended);
  for (Flight& flight : ended) {
    if (flight.trace) flight.task.trace = &*flight.trace;
    count(flight);
  }
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
  const auto now = Clock::now();
  const auto is_due = [now](const Flight& flight) {
    return flight.end.how == Ended::How::answered && flight.account_at <= now;
  };
  for (Flight& flight : done_)
    if (is_due(flight)) answered.push_back(&flight);
  if (answered.empty()) return;
  const std::vector<store::Kept> kept = keep(answered);
  flow::crash_point("call_answered");
  auto next = kept.begin();
  for (auto flight = done_.begin(); flight != done_.end();) {
    if (!is_due(*flight)) {
      ++flight;
      continue;
    }
    const store::Kept how = *next++;
    if (how == store::Kept::locked) {
      flight->account_at = Clock::now() + kKeyLocked;
      ++flight;
    } else if (how == store::Kept::yes) {
      flight->item().answered =
          waiting(flight->route(), flight->taken.token, std::move(flight->end.text));
      flight = pass_to_lane(done_, flight);
    } else {
      log_not_kept(*flight);
      flight = settle(done_, flight,
                      flow::to_call("superseded", flight->task.attempts, flow::kKeyHeldWait));
    }
  }
}

void OutsideCalls::log_not_kept(const Flight& flight) {
  const bool is_forgotten = !store::read_holder(*session_, flight.claim());
  observe::log::warning(
      is_forgotten ? "call_forgotten" : "call_superseded",
      {{"topic", flight.source.topic},
       {"partition", flight.source.partition},
       {"offset", flight.source.offset},
       {"token", flight.taken.token},
       {"answer",
        setup_.log_error_text ? std::optional<std::string_view>(flight.end.text) : std::nullopt}},
      is_forgotten
          ? "a call was answered, and PostgreSQL has lost its key (a failover or a restore). The "
            "answer is not kept; with log.error_text it is shown here"
          : "a call was answered after another worker had taken its key over (this worker's "
            "lease was over), or after an operator had decided about it. The answer is not kept; "
            "with log.error_text it is shown here");
}

// Keeps the answers, and returns what became of each call that is still `answered`. If PostgreSQL
// cannot keep an answer (too large, nested too deep), that call becomes `failed`, and the others
// are kept.
std::vector<store::Kept> OutsideCalls::keep(const std::vector<Flight*>& answered) {
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
  std::vector<store::Kept> kept;
  for (Flight* const flight : answered)
    for (const store::Kept how : keep({flight})) kept.push_back(how);
  return kept;
}

// The answer counts as waiting until a lane has booked it, or the message is dropped.
flow::Answered OutsideCalls::waiting(std::size_t route, std::int64_t token,
                                     std::string answer) const {
  ++*answers_[route];
  return {token, std::move(answer), {nullptr, [counted = answers_[route]](const void* /*none*/) {
                                       --*counted;
                                     }}};
}

}  // namespace hapax::worker
