// The call of a replay, on a route that calls to the outside: the same steps as for a message of
// Kafka, one by one. The replay's row is not locked meanwhile; the key's token keeps others away.
#include "flow/replay.hpp"
#include "flow/verdicts.hpp"
#include "store/outside/calls.hpp"

namespace hapax::flow {
namespace {

using outside::Ended;
using outside::Step;
using What = store::ReplayNote::What;

constexpr std::chrono::milliseconds kNoLeaseWait{1000};

store::ReplayNote later_again(std::chrono::milliseconds wait) {
  return {.what = What::put_back, .text = {}, .wait = wait};
}

}  // namespace

std::optional<store::ReplayNote> Replayer::call(Run& current, const store::ClaimRequest& request,
                                                const Message& message) {
  const config::Outside& rules = *current.route.outside;
  const outside::Holder* const holder = setup_.holder;
  if (holder == nullptr || !holder->lease.may_call()) return later_again(kNoLeaseWait);
  const store::CallRequest wanted{request};
  const store::Take take =
      store::take_calls(*session_, holder->id, std::span(&wanted, 1), true).front();
  if (!take.taken) return later_again(kKeyHeldWait);
  const store::TakenCall& taken = *take.taken;
  const outside::Plan plan =
      outside::plan(rules, {taken.calls, taken.crashes, taken.age, taken.answer.has_value()},
                    current.route.retry.max_crashes);
  if (plan.step == Step::book) {
    current.answered = Answered{taken.token, *taken.answer};
    return std::nullopt;
  }
  if (plan.step == Step::give_up)
    return end_call(request, taken.token, store::CallEnd::unknown, std::string(plan.why));
  outside::CallToMake call;
  call.message = &message;
  call.key = outside::key_to_hand_on(request.scope, request.identity);
  call.token = taken.token;
  call.step = plan.step;
  call.max_duration = rules.max_duration;
  setup_.make_call(&current.route, call);
  const Ended& ended = call.end;
  const bool uncalled = ended.how == Ended::How::not_called || ended.how == Ended::How::not_begun;
  const bool exhausted = current.claimed.runs >= current.route.retry.max_attempts;
  switch (outside::after(rules, ended.how, taken.calls, exhausted)) {
    case outside::Then::keep_answer: {
      const store::KeptAnswer answer{request.identity, request.scope, taken.token, ended.text};
      if (!store::keep_answers(*session_, std::span(&answer, 1)).front())
        return later_again(kKeyHeldWait);
      current.answered = Answered{taken.token, ended.text};
      return std::nullopt;
    }
    case outside::Then::refuse:
      return end_call(request, taken.token, store::CallEnd::refused, ended.text);
    case outside::Then::fail:
      return end_call(request, taken.token, store::CallEnd::uncalled, ended.text);
    case outside::Then::give_up:
      return end_call(request, taken.token, store::CallEnd::unknown, ended.text);
    case outside::Then::put_back:
      store::give_call_back(*session_, request, taken.token, true);
      return later_again(kKeyHeldWait);
    case outside::Then::try_again: break;
  }
  store::give_call_back(*session_, request, taken.token, uncalled);
  return count_run(current, {store::Fault::Kind::other, "", ended.text}, ended.after);
}

store::ReplayNote Replayer::end_call(const store::ClaimRequest& request, std::int64_t token,
                                     store::CallEnd end, const std::string& why) {
  if (!store::end_replayed_call(*session_, request, token, end, why))
    return later_again(kKeyHeldWait);
  const char* const reason = end == store::CallEnd::refused    ? "rejected"
                             : end == store::CallEnd::uncalled ? "attempts_exhausted"
                                                               : "outcome_unknown";
  return {What::failed, std::string(reason) + ": " + why};
}

}  // namespace hapax::flow
