#include "testing/caller.hpp"

#include <stdexcept>
#include <stop_token>

#include "flow/call_account.hpp"
#include "flow/verdicts.hpp"
#include "key/identity.hpp"
#include "outside/call.hpp"

namespace hapax::testing {

using outside::Ended;
using outside::Step;

Caller::Caller(const TestedRoute& route, flow::LaneSession::Connect connect)
    : handler_(flow::start_outside_handler(route.route, route.options)),
      session_(std::move(connect)) {}

std::optional<flow::Outcome> Caller::call(const flow::Task& task, flow::Answered& answered) {
  std::string why;
  if (!session_.is_reachable(why)) throw std::runtime_error("PostgreSQL is away: " + why);
  hold_lease();
  key::Derived derived = key::identify(task.route.key, task.message, task.generation);
  flow::Attempt attempt(task, session_, random_, std::get<key::Identity>(std::move(derived)));
  const store::CallRequest wanted{attempt.request()};
  const store::Take take = store::take_calls(*session_, holder_, std::span(&wanted, 1)).front();
  if (!take.taken) return flow::to_call("key_started", task.attempts, flow::kKeyHeldWait);
  const store::TakenCall& taken = *take.taken;
  if (happens(CallFault::dies_before)) throw Died();
  auto next = flow::next_step(attempt, taken,
                              {taken.calls, taken.crashes, taken.age, taken.answer.has_value()});
  if (auto* const ended = std::get_if<flow::Outcome>(&next)) return std::move(*ended);
  const Step step = std::get<Step>(next);
  if (step == Step::book) {
    answered = {taken.token, *taken.answer};
    return std::nullopt;
  }
  Ended ended = make(attempt, taken.token, step);
  if (ended.how == Ended::How::answered) {
    const store::KeptAnswer answer{*attempt.identity, task.route.key.scope, taken.token,
                                   ended.text};
    try {
      if (store::keep_answers(*session_, std::span(&answer, 1)).front() != store::Kept::yes)
        return flow::to_call("superseded", task.attempts, flow::kKeyHeldWait);
      if (happens(CallFault::dies_kept)) throw Died();
      answered = {taken.token, ended.text};
      return std::nullopt;
    } catch (const store::DatabaseError& error) {
      if (!store::is_too_much(error.fault())) throw;
      ended = outside::not_kept(error.fault().text);
    }
  }
  std::optional<store::FailedRuns> failed;
  return flow::account_for_call(attempt, taken, ended, failed);
}

void Caller::hold_lease() {
  if (holder_ != 0 && store::renew_holder(*session_, holder_, kLease)) return;
  holder_ = store::register_holder(*session_, "test", "hapax test kit", kLease);
}

// Any other worker than the kit's would keep the answers in another thread.
class Caller::SteppingKeeper final : public outside::StepKeeper {
 public:
  explicit SteppingKeeper(Caller& caller) : caller_(caller) {}

  std::optional<store::KeptSteps> read(const outside::StepOwner& owner) override {
    return store::read_steps(*caller_.session_, owner.identity, owner.scope, owner.token);
  }
  bool keep(const outside::StepOwner& owner, const store::KeptSteps& steps,
            const store::KeptSteps& before) override {
    died = caller_.happens(CallFault::dies_in_step);
    if (died) throw std::runtime_error("the process died");  // make_call() lets Died not through
    const store::StepsToKeep all{owner.identity, owner.scope, owner.token, steps, before};
    const auto kept = store::keep_steps(*caller_.session_, std::span(&all, 1)).front();
    ++caller_.steps_;
    died = caller_.happens(CallFault::dies_between);
    if (died) throw std::runtime_error("the process died");
    return kept == store::Kept::yes;
  }

  bool died = false;

 private:
  Caller& caller_;
};

Ended Caller::make(const flow::Attempt& attempt, std::int64_t token, Step step) {
  const flow::Task& task = attempt.task;
  const std::string key = outside::key_to_hand_on(task.route.key.scope, *attempt.identity);
  const std::stop_source stop;
  SteppingKeeper keeper(*this);
  const std::function<bool()> may_begin = [&keeper] { return !keeper.died; };
  outside::Steps steps(
      {.identity = *attempt.identity, .scope = task.route.key.scope, .token = token}, key, keeper,
      may_begin);
  const Call call({.key = key,
                   .token = token,
                   .deadline = std::chrono::steady_clock::now() + task.route.outside->max_duration,
                   .stop_token = stop.get_token(),
                   .steps = &steps});
  if (step == Step::reconcile && happens(CallFault::cannot_tell))
    return {Ended::How::unknown, "reconcile: the other side cannot tell yet"};
  Ended ended = outside::make_call(*handler_, task.message, call, step, [&] {
    steps.call_begins();
    ++calls_;
    return true;
  });
  outside::heed_doubt(steps, ended);
  if (keeper.died || happens(CallFault::dies_after)) throw Died();
  if (ended.how == Ended::How::answered && happens(CallFault::loses_answer))
    return {Ended::How::failed, "the connection broke before the answer came"};
  return ended;
}

bool Caller::happens(CallFault fault) {
  if (fault_ != fault) return false;
  fault_.reset();
  return true;
}

}  // namespace hapax::testing
