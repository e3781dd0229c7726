#include "worker/step_desk.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "flow/crash_point.hpp"
#include "observe/log.hpp"
#include "worker/after_refusal.hpp"

namespace hapax::worker {
namespace {

// If the call was asked to stop, so long for an answer that is there: half of what it has to
// return.
constexpr std::chrono::seconds kStillWaits{5};

std::chrono::steady_clock::time_point waits_until(const outside::StepOwner& owner) {
  return std::min(std::chrono::steady_clock::now(), owner.deadline) + kStillWaits;
}

// Whether the question itself is wrong, so that asking again would not help.
std::exception_ptr refusal_of(const store::DatabaseError& error) {
  if (store::is_too_much(error.fault()))
    return std::make_exception_ptr(
        std::runtime_error("PostgreSQL cannot keep the answer of a step: " + error.fault().text));
  return {};
}

}  // namespace

std::optional<store::KeptSteps> StepDesk::read(const outside::StepOwner& owner) {
  return std::move(ask({.owner = owner, .steps = std::nullopt})->found);
}

bool StepDesk::keep(const outside::StepOwner& owner, const store::KeptSteps& steps,
                    const store::KeptSteps& before) {
  return ask({.owner = owner, .steps = steps, .before = before})->is_ours;
}

std::shared_ptr<StepDesk::Asked> StepDesk::ask(Asked question) {
  const auto asked = std::make_shared<Asked>(std::move(question));
  sync::Lock lock(mutex_);
  questions_.push_back(asked);
  wake_();
  const auto done = [&] { return asked->done; };
  const bool in_time = answered_.wait(lock.waitable(), asked->owner.stop, done) ||
                       answered_.wait_until(lock.waitable(), waits_until(asked->owner), done);
  if (!in_time) {
    questions_.remove(asked);
    throw std::runtime_error("PostgreSQL did not answer before the call had to stop");
  }
  if (asked->refused) std::rethrow_exception(asked->refused);
  return asked;
}

void StepDesk::serve(store::Session& session) {
  Questions asked;
  {
    const sync::Lock lock(mutex_);
    if (questions_.empty()) return;
    asked = questions_;
  }
  Questions keeps;
  const auto now = std::chrono::steady_clock::now();
  for (const auto& question : asked) {
    if (question->due > now) continue;
    if (question->steps) {
      keeps.push_back(question);
      continue;
    }
    question->found = store::read_steps(session, question->owner.identity, question->owner.scope,
                                        question->owner.token);
    end(*question);
  }
  std::exception_ptr refused;
  answer_keeps(session, keeps, refused);
  if (refused) std::rethrow_exception(refused);
}

// All in one transaction; one by one if PostgreSQL refuses one of them.
void StepDesk::answer_keeps(store::Session& session, Questions& asked,
                            std::exception_ptr& refused) {
  if (asked.empty()) return;
  const auto began = std::chrono::steady_clock::now();
  std::vector<store::StepsToKeep> wanted;
  for (const auto& question : asked)
    wanted.push_back({question->owner.identity, question->owner.scope, question->owner.token,
                      *question->steps, question->before});
  try {
    const std::vector<store::Kept> kept = store::keep_steps(session, wanted);
    flow::crash_point("step_kept");
    auto how = kept.begin();
    for (const auto& question : asked) {
      question->is_ours = *how == store::Kept::yes;
      if (*how++ != store::Kept::locked) end(*question);
    }
  } catch (const store::DatabaseError& error) {
    const std::exception_ptr for_good = refusal_of(error);
    if (!for_good && !store::is_refusal(error.fault())) throw;
    if (asked.size() == 1 && for_good) {
      asked.front()->refused = for_good;
      return end(*asked.front());
    }
    if (asked.size() == 1) {
      asked.front()->due = after_refusal(began);
      refused = std::current_exception();
      return;
    }
    for (const auto& question : asked) {
      Questions one = {question};
      answer_keeps(session, one, refused);
    }
  }
}

void StepDesk::tell_not_kept(bool with_answers) const {
  const sync::Lock lock(mutex_);
  for (const auto& question : questions_) {
    if (!question->steps || question->owner.message == nullptr) continue;
    for (const auto& [name, answer] : question->steps->answers)
      if (!question->before.answers.contains(name))
        observe::log::warning(
            "step_not_kept",
            {{"topic", question->owner.message->topic()},
             {"partition", question->owner.message->partition()},
             {"offset", question->owner.message->offset()},
             {"token", question->owner.token},
             {"step", name},
             {"answer", with_answers ? std::optional<std::string_view>(answer) : std::nullopt}},
            "a step of a call was answered, and PostgreSQL has not kept the answer yet. If the "
            "process ends now, the step is in doubt; with log.error_text the answer is shown here");
  }
}

void StepDesk::end(Asked& asked) {
  const sync::Lock lock(mutex_);
  asked.done = true;
  std::erase_if(questions_, [&asked](const auto& other) { return other.get() == &asked; });
  answered_.notify_all();
}

}  // namespace hapax::worker
