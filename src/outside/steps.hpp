// The steps of a call: each has an answer of its own, which PostgreSQL keeps with the key before
// the next step begins. The next call of the operation does not repeat a step whose answer is kept.
//
//   call.step ─begin()─▶ kept: its answer
//                     └▶ not kept: the handler's part ─keep()─▶ committed
//
// A caller's thread has no session, so it asks a StepKeeper for both.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>

#include "hapax/outside.hpp"
#include "outside/policy.hpp"
#include "store/outside/calls.hpp"

namespace hapax::outside {

// Whose steps they are. If a stop is requested, the caller waits for PostgreSQL for a few seconds
// more. Beyond the call's deadline it waits no longer than that, either.
struct StepOwner {
  key::Identity identity;
  std::string scope;
  std::int64_t token = 0;
  std::stop_token stop = {};
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  const Message* message = nullptr;  // outlives each question
};

class StepKeeper {
 public:
  virtual ~StepKeeper() = default;
  // As store::read_steps and store::keep_steps; keep() returns false if another holder took the key
  // over. `before`: the steps that PostgreSQL has. Any thread.
  // Throws: std::runtime_error, with a sentence. Blocks: until PostgreSQL has answered.
  virtual std::optional<store::KeptSteps> read(const StepOwner& owner) = 0;
  virtual bool keep(const StepOwner& owner, const store::KeptSteps& steps,
                    const store::KeptSteps& before) = 0;
};

// Thread safety: none; one for each call.
class Steps final : public CallSteps {
 public:
  // `call_key`: as the handler gets it. `may_begin`: whether the call's lease lasts. Both and
  // `keeper` outlive it.
  Steps(StepOwner owner, std::string_view call_key, StepKeeper& keeper,
        const std::function<bool()>& may_begin)
      : owner_(std::move(owner)), call_key_(call_key), keeper_(keeper), may_begin_(may_begin) {}

  std::optional<std::string> kept(std::string_view name) override;
  std::optional<std::string> begin(std::string_view name) override;
  std::string key_of(std::string_view name) override;
  void keep(std::string_view name, const std::string& answer) override;
  void not_done(std::string_view name) override;

  // Whether a step was begun, and may have happened, and is not kept.
  bool is_in_doubt() const { return !in_doubt_.empty(); }

  // The call itself begins, behind a reconcile that may have run steps.
  void call_begins() { begun_.clear(); }

 private:
  void read();
  [[noreturn]] void refuse(const std::string& why) const;

  const StepOwner owner_;
  const std::string_view call_key_;
  StepKeeper& keeper_;
  const std::function<bool()>& may_begin_;
  std::optional<store::KeptSteps> steps_;
  std::set<std::string, std::less<>> begun_;
  std::set<std::string, std::less<>> in_doubt_;
  bool lost_ = false;  // another holder has the key
};

// A call with a step in doubt may have happened, though it threw NotCalled: the handler may have
// caught what the step threw.
void heed_doubt(const Steps& steps, Ended& ended);

// False if none is kept, or if the fingerprints are by two rules and so cannot be compared.
bool are_of_another_payload(const store::KeptSteps& steps, const key::Fingerprint& own);
// True if steps are kept and cannot be shown to be of this payload.
bool may_be_of_another_payload(const store::KeptSteps& steps, const key::Fingerprint& own);

// "charge, notify": for people. Empty: no step is kept.
std::string names_of(const store::KeptSteps& steps);

}  // namespace hapax::outside
