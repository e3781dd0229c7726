// The call of a replay, on a route that calls to the outside: the same steps as for a message of
// Kafka, one by one. The replay's row is not locked meanwhile: its claim is extended, and the key's
// token keeps others away.
#include "flow/call_account.hpp"
#include "flow/replay.hpp"
#include "flow/verdicts.hpp"
#include "observe/log.hpp"
#include "store/outside/calls.hpp"

namespace hapax::flow {
namespace {

using outside::Ended;
using outside::Step;
using store::CallEnd;
using What = store::ReplayNote::What;

constexpr std::chrono::milliseconds kNoLeaseWait{1000};
constexpr std::chrono::milliseconds kTellAgain{250};

store::ReplayNote later_again(std::chrono::milliseconds wait) {
  return {.what = What::put_back, .text = {}, .wait = wait};
}

}  // namespace

std::optional<store::ReplayNote> Replayer::call(Run& current, const Message& message) {
  outside::Holder& holder = setup_.outside->holder;
  const store::HolderId id = holder.may_call();
  if (id == 0) return later_again(kNoLeaseWait);
  outside::CallToMake call;
  call.message = &message;
  call.holder = id;
  call.key = outside::key_to_hand_on(current.route.key.scope, *current.identity);
  if (!holder.keys.add(call.key)) return later_again(kKeyHeldWait);
  try {
    auto note = call_in_hand(current, call, id);
    holder.keys.remove(call.key);
    return note;
  } catch (...) {
    leave(current, call, id, call.began.load() == std::chrono::steady_clock::time_point{});
    throw;
  }
}

// PostgreSQL may keep the key, though this replay does not go on with it.
void Replayer::leave(const Run& current, outside::CallToMake& call, store::HolderId holder,
                     bool uncalled) {
  setup_.outside->holder.keys.leave(std::exchange(call.key, {}), {.identity = *current.identity,
                                                                  .scope = current.route.key.scope,
                                                                  .holder = holder,
                                                                  .uncalled = uncalled});
}

std::optional<store::ReplayNote> Replayer::call_in_hand(Run& current, outside::CallToMake& call,
                                                        store::HolderId holder) {
  const Route& route = current.route;
  const store::CallRequest wanted{
      .claim = current.request(), .replay = current.claimed.id, .runs = current.claimed.runs};
  const store::Take take =
      store::take_calls(*session_, holder, std::span(&wanted, 1), true).front();
  if (take.is_own) leave(current, call, holder, false);  // a take that committed late has left it
  if (!take.taken) return later_again(kKeyHeldWait);
  const store::TakenCall& taken = *take.taken;
  if (!current.crashed.empty())
    return end_call(current, taken.token,
                    taken.calls <= 1 && !taken.answer ? CallEnd::uncalled : CallEnd::unknown,
                    current.crashed);
  const outside::Plan plan = outside::plan(
      *route.outside, {taken.calls, taken.crashes, taken.age, taken.answer.has_value()},
      route.retry.max_crashes);
  if (plan.step == Step::book) {
    current.answered = Answered{taken.token, *taken.answer};
    return std::nullopt;
  }
  if (plan.step == Step::give_up)
    return end_call(current, taken.token, CallEnd::unknown, std::string(plan.why));
  call.identity = *current.identity;
  call.scope = route.key.scope;
  call.token = taken.token;
  call.step = plan.step;
  call.max_duration = route.outside->max_duration;
  setup_.outside->make_call(route, current.source, call, [&] { extend(current); });
  return settle_call(current, taken, call.end);
}

// Extends the claim, because another worker would claim the replay while the call runs.
void Replayer::extend(const Run& current) {
  std::string why;
  try {
    if (session_.is_reachable(why)) store::extend_replay(*session_, current.claimed, setup_.lease);
  } catch (const store::DatabaseError&) {
    session_.drop();  // a worker that claims it finds the key held
  }
}

std::optional<store::ReplayNote> Replayer::settle_call(Run& current, const store::TakenCall& taken,
                                                       Ended ended) {
  if (ended.how == Ended::How::answered) {
    const store::ClaimRequest request = current.request();
    const store::KeptAnswer answer{request.identity, request.scope, taken.token, ended.text};
    store::Kept kept = store::Kept::locked;
    try {
      do {
        tell([&] { kept = store::keep_answers(*session_, std::span(&answer, 1)).front(); });
      } while (kept == store::Kept::locked && setup_.outside->wait(kTellAgain));
      if (kept == store::Kept::locked)
        throw store::DatabaseError({store::Fault::Kind::sql, "55P03", "its key stays locked"});
      if (kept == store::Kept::superseded) {
        const std::string* const shown = setup_.log_error_text ? &ended.text : nullptr;
        tell([&] { log_superseded(*session_, request, taken.token, shown); });
        return later_again(kKeyHeldWait);
      }
      current.answered = Answered{taken.token, ended.text};
      return std::nullopt;
    } catch (const store::DatabaseError& error) {
      if (!store::is_too_much(error.fault())) throw;
      ended = outside::not_kept(error.fault().text);
    }
  }
  const bool uncalled = ended.how == Ended::How::not_called || ended.how == Ended::How::not_begun;
  const bool exhausted = current.claimed.runs >= current.route.retry.max_attempts;
  const auto give_back = [&] {
    tell([&] { store::give_call_back(*session_, current.request(), taken.token, uncalled); });
  };
  switch (outside::after(*current.route.outside, ended, taken.calls, exhausted)) {
    case outside::Then::refuse: return end_call(current, taken.token, CallEnd::refused, ended.text);
    case outside::Then::reject:
    case outside::Then::fail: return end_call(current, taken.token, CallEnd::uncalled, ended.text);
    case outside::Then::give_up:
      return end_call(current, taken.token, CallEnd::unknown, ended.text);
    case outside::Then::put_back: give_back(); return later_again(kKeyHeldWait);
    case outside::Then::keep_answer:
    case outside::Then::try_again: break;
  }
  give_back();
  return count_run(current, {store::Fault::Kind::other, "", ended.text}, ended.after);
}

store::ReplayNote Replayer::end_call(const Run& current, std::int64_t token, CallEnd end,
                                     std::string why) {
  bool is_ours = false;
  tell([&] { heed_steps(*session_, current.request(), token, end, why); });
  tell([&] { is_ours = store::end_replayed_call(*session_, current.request(), token, end, why); });
  if (!is_ours) return later_again(kKeyHeldWait);
  const char* const reason = end == CallEnd::refused   ? "rejected"
                             : end == CallEnd::unknown ? "outcome_unknown"
                                                       : "attempts_exhausted";
  return {What::failed, std::string(reason) + ": " + why};
}

// The booking failed for good. The call was made, so an operator decides about it. The key keeps
// the answer.
void Replayer::end_booking(const Run& current, const std::string& why) {
  tell([&] {
    store::end_replayed_call(*session_, current.request(), current.answered->token,
                             CallEnd::unknown, why);
  });
}

void Replayer::tell(const std::function<void()>& statement) {
  for (;;) {
    std::string why;
    if (session_.is_reachable_and_clean(why)) {
      try {
        return statement();
      } catch (const store::DatabaseError& error) {
        if (store::is_too_much(error.fault())) throw;
        why = error.what();
        tell_of_refusal(error);
        session_.drop();
      }
    }
    if (!setup_.outside->wait(kTellAgain))
      throw store::DatabaseError({store::Fault::Kind::connection, "", why});
  }
}

// The lanes log an outage.
void Replayer::tell_of_refusal(const store::DatabaseError& error) {
  if (!store::is_refusal(error.fault()) || std::exchange(said_, error.what()) == error.what())
    return;
  observe::log::warning("calls_delayed", {{"sqlstate", error.sqlstate()}, {"error", error.what()}},
                        "PostgreSQL refuses to keep what came of a replay's call; trying again");
}

// The booking of an outside message belongs to the run that called.
void Replayer::begin_span(Run& current, const Message& message) {
  if (std::exchange(current.has_span, true)) return;
  const traces::Received received{message};
  current.trace = spans_.begin(std::span(&received, 1), current.route.handler.name,
                               std::chrono::steady_clock::now(), current.claimed.id);
  current.trace_id = traces::Carried(message, current.trace).trace_id();
}

void Replayer::end_span(const std::optional<Note>& note) {
  traces::Ended ended{"completed"};
  if (note) {
    ended.outcome = note->what == What::refused  ? "refused"
                    : note->what == What::failed ? "failed"
                                                 : "later";
    ended.error = note->sqlstate.empty() ? ended.outcome : note->sqlstate;
  }
  spans_.end(std::span(&ended, 1), std::chrono::steady_clock::now());
}

}  // namespace hapax::flow
