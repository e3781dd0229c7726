// The threads that make calls to the outside. Each has a handler of its own, and no session.
//
// Thread safety: all of it, from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "outside/call.hpp"
#include "outside/holder.hpp"
#include "outside/steps.hpp"
#include "sync/mutex.hpp"
#include "traces/tracer.hpp"

namespace hapax::outside {

// A call to make. It lives until `is_back`.
struct CallToMake {
  const Message* message = nullptr;
  std::string key;  // to hand on
  key::Identity identity = {};
  std::string scope = {};
  std::int64_t token = 0;
  // The key was taken under its lease; under another the call must not begin.
  store::HolderId holder = 0;
  Step step = Step::call;
  std::chrono::milliseconds max_duration{0};
  std::stop_source stop = {};
  bool asked_to_stop = false;          // by its owner
  std::atomic<bool> cancelled{false};  // before it has begun
  // Set by the caller's thread; `end` and `trace` may be read once `is_back`.
  std::atomic<std::chrono::steady_clock::time_point> began{std::chrono::steady_clock::time_point{}};
  Ended end = {};
  std::optional<traces::Trace> trace = {};  // that it is part of; nothing: traces are off
  std::atomic<bool> is_back{false};
};

class Callers {
 public:
  // One thread for each handler. `came_back`: called by its thread after each call. `name`: of the
  // handlers, for spans. `tracer`: null if traces are off. `holder`, `steps` and `tracer` outlive
  // it.
  Callers(std::vector<std::unique_ptr<OutsideHandler>> handlers, const Holder& holder,
          StepKeeper& steps, std::function<void()> came_back, std::string name = {},
          traces::Tracer* tracer = nullptr);
  // Blocks: until all calls have come back.
  ~Callers();
  Callers(const Callers&) = delete;
  Callers& operator=(const Callers&) = delete;

  std::size_t size() const { return threads_.size(); }

  // Queues it for the next free thread.
  void add(CallToMake& call);

 private:
  void run(OutsideHandler& handler, const std::stop_token& stop);
  void make(OutsideHandler& handler, CallToMake& call, traces::Runs& spans) const;

  const Holder& holder_;
  StepKeeper& steps_;
  const std::function<void()> came_back_;
  const std::string name_;
  traces::Tracer* const tracer_;
  std::vector<std::unique_ptr<OutsideHandler>> handlers_;
  sync::Mutex mutex_;
  std::condition_variable_any call_there_;
  std::deque<CallToMake*> queue_ HAPAX_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;  // last: they use all of the above
};

}  // namespace hapax::outside
