#include "worker/call_accounts.hpp"

#include "flow/call_account.hpp"
#include "flow/crash_point.hpp"
#include "flow/verdicts.hpp"
#include "observe/log.hpp"
#include "worker/after_refusal.hpp"

namespace hapax::worker {

using flow::Outcome;
using outside::Ended;

namespace {

constexpr std::chrono::milliseconds kCountUnknownAgain{5'000};
constexpr std::chrono::milliseconds kKeyLocked{250};  // by a transaction that is about to end
constexpr const char* kLockNotAvailable = "55P03";

}  // namespace

CallAccounts::CallAccounts(LaneSetup& setup, const std::vector<flow::Route>& routes,
                           flow::LaneSession& session, CallsInFlight& in_flight, FlightEnds& ends,
                           std::uint64_t seed)
    : log_error_text_(setup.log_error_text),
      routes_(routes),
      session_(session),
      in_flight_(in_flight),
      ends_(ends),
      random_(seed) {
  for (std::size_t i = 0; i < routes.size(); ++i) {
    if (routes[i].outside) metrics_.emplace(i, setup.metrics.calls(routes[i].topic));
    answers_.push_back(std::make_shared<std::atomic<std::size_t>>(0));
  }
}

void CallAccounts::finish_all() {
  for (auto flight = done_.begin(); flight != done_.end();) {
    set_not_kept(*flight, false);
    flight = ends_.finish(done_, flight);
  }
}

void CallAccounts::keep_ended(const std::function<void()>& meanwhile) {
  collect_ended();
  keep_answers(meanwhile);
  for (auto flight = done_.begin(); flight != done_.end();) {
    if (flight->end.how == Ended::How::answered || Clock::now() < flight->account_at) {
      ++flight;
      continue;
    }
    meanwhile();
    const auto began = Clock::now();
    try {
      flow::Attempt attempt(flight->task, session_, random_, flight->identity);
      Outcome outcome = flow::account_for_call(attempt, flight->taken, flight->end, flight->failed);
      flight = ends_.settle(done_, flight, std::move(outcome));
    } catch (const store::DatabaseError& error) {
      if (error.fault().kind != store::Fault::Kind::sql) throw;
      flight->account_at = after_refusal(began);          // the others need not wait
      if (error.sqlstate() == kLockNotAvailable) return;  // calls are taken meanwhile
      throw;
    }
  }
}

void CallAccounts::collect_ended() {
  Flights ended;
  in_flight_.collect(ended);
  for (Flight& flight : ended) {
    if (flight.trace) flight.task.trace = &*flight.trace;
    count(flight);
    if (flight.end.how == Ended::How::answered) set_not_kept(flight, true);
  }
  done_.splice(done_.end(), ended);
}

void CallAccounts::count(const Flight& ended) {
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

void CallAccounts::count_unknown() {
  if (Clock::now() < count_again_) return;
  count_again_ = Clock::now() + kCountUnknownAgain;
  for (auto& [route, metrics] : metrics_)
    metrics.unknown(store::count_unknown(*session_, {routes_[route].key.scope}));
}

void CallAccounts::keep_answers(const std::function<void()>& meanwhile) {
  std::vector<Flight*> with_answer;
  const auto now = Clock::now();
  const auto is_due = [now](const Flight& flight) {
    return flight.end.how == Ended::How::answered && flight.account_at <= now;
  };
  for (Flight& flight : done_)
    if (is_due(flight)) with_answer.push_back(&flight);
  if (with_answer.empty()) return;
  std::exception_ptr refused;
  const std::vector<store::Kept> kept = keep(with_answer, meanwhile, refused);
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
      continue;
    }
    set_not_kept(*flight, false);
    if (how == store::Kept::yes) {
      flight->item().answered =
          answered(flight->route(), flight->taken.token, std::move(flight->end.text));
      flight = ends_.pass_to_lane(done_, flight);
    } else {
      flow::log_superseded(*session_, flight->claim(), flight->taken.token,
                           log_error_text_ ? &flight->end.text : nullptr);
      flight = ends_.settle(done_, flight,
                            flow::to_call("superseded", flight->task.attempts, flow::kKeyHeldWait));
    }
  }
  if (refused) std::rethrow_exception(refused);
}

void CallAccounts::set_not_kept(const Flight& flight, bool is_not_kept) {
  const sync::Lock lock(mutex_);
  is_not_kept ? void(not_kept_.insert(&flight)) : void(not_kept_.erase(&flight));
}

void CallAccounts::tell_not_kept() const {
  const sync::Lock lock(mutex_);
  for (const Flight* const flight : not_kept_)
    observe::log::warning(
        "answer_not_kept",
        {{"topic", flight->source.topic},
         {"partition", flight->source.partition},
         {"offset", flight->source.offset},
         {"token", flight->taken.token},
         {"answer",
          log_error_text_ ? std::optional<std::string_view>(flight->end.text) : std::nullopt}},
        "a call was answered, and PostgreSQL has not kept the answer yet. If the process ends now, "
        "the answer is lost; with log.error_text it is shown here");
}

// Keeps the answers, and returns what became of each call that is still `answered` and due. If
// PostgreSQL cannot keep an answer (too large, nested too deep), that call becomes `failed`. If it
// refuses for another reason, such as statement_timeout, that call is not due for a while, and
// `refused` tells why. The others are kept.
std::vector<store::Kept> CallAccounts::keep(const std::vector<Flight*>& answered,
                                            const std::function<void()>& meanwhile,
                                            std::exception_ptr& refused) {
  std::vector<store::KeptAnswer> answers;
  for (const Flight* const flight : answered)
    answers.push_back(
        {flight->identity, flight->task.route.key.scope, flight->taken.token, flight->end.text});
  const auto began = Clock::now();
  try {
    return store::keep_answers(*session_, answers);
  } catch (const store::DatabaseError& error) {
    const bool is_too_much = store::is_too_much(error.fault());
    if (!is_too_much && !store::is_refusal(error.fault())) throw;
    if (answers.size() == 1) {
      if (is_too_much) {
        set_not_kept(*answered.front(), false);
        answered.front()->end = outside::not_kept(error.fault().text);
      } else {
        answered.front()->account_at = after_refusal(began);
        refused = std::current_exception();
      }
      return {};
    }
  }
  std::vector<store::Kept> kept;
  for (Flight* const flight : answered) {
    meanwhile();
    for (const store::Kept how : keep({flight}, meanwhile, refused)) kept.push_back(how);
  }
  return kept;
}

flow::Answered CallAccounts::answered(std::size_t route, std::int64_t token,
                                      std::string answer) const {
  ++*answers_[route];
  return {token, std::move(answer), {nullptr, [counted = answers_[route]](const void* /*none*/) {
                                       --*counted;
                                     }}};
}

}  // namespace hapax::worker
