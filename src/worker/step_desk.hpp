// What callers' threads ask PostgreSQL about steps. They have no session, so the thread of
// OutsideCalls answers.
//
// Thread safety: all of it, from any thread; one thread serves.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "outside/steps.hpp"
#include "sync/mutex.hpp"

namespace hapax::worker {

class StepDesk final : public outside::StepKeeper {
 public:
  // `wake`: called if something is asked.
  explicit StepDesk(std::function<void()> wake) : wake_(std::move(wake)) {}

  std::optional<store::KeptSteps> read(const outside::StepOwner& owner) override;
  bool keep(const outside::StepOwner& owner, const store::KeptSteps& steps,
            const store::KeptSteps& before) override;

  // Answers what is asked. If another transaction has a key, its question stays for the next time.
  // If PostgreSQL refuses one, the others are answered, and that one waits for a while.
  // Throws: DatabaseError. What is not answered stays asked.
  void serve(store::Session& session);

  // Logs the steps that were answered and whose answers PostgreSQL does not have yet.
  void tell_not_kept(bool with_answers) const;

 private:
  struct Asked {
    outside::StepOwner owner;
    std::optional<store::KeptSteps> steps;  // to keep; nothing: to read
    store::KeptSteps before = {};           // as PostgreSQL has them
    std::optional<store::KeptSteps> found = {};
    bool is_ours = false;
    std::exception_ptr refused = {};
    std::chrono::steady_clock::time_point due = {};  // later, if PostgreSQL has refused it
    bool done = false;
  };
  using Questions = std::list<std::shared_ptr<Asked>>;

  std::shared_ptr<Asked> ask(Asked asked);
  void answer_keeps(store::Session& session, Questions& asked, std::exception_ptr& refused);
  void end(Asked& asked);

  const std::function<void()> wake_;
  mutable sync::Mutex mutex_;
  std::condition_variable_any answered_;
  Questions questions_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::worker
