#include "outside/callers.hpp"

#include "traces/carried.hpp"

namespace hapax::outside {
namespace {

// How its span ends. An answer and a refusal both came from the other side, so neither is an error.
traces::Ended ended_as(const Ended& end) {
  switch (end.how) {
    case Ended::How::answered: return {"answered"};
    case Ended::How::refused: return {"refused"};
    case Ended::How::not_called: return {"not_called", "not_called"};
    case Ended::How::no_call: return {"not_called", "bad_payload"};
    case Ended::How::not_begun: return {"not_called"};
    case Ended::How::failed: return {"failed", "failed"};
    case Ended::How::unknown: break;
  }
  return {"unknown", "unknown"};
}

}  // namespace

Callers::Callers(std::vector<std::unique_ptr<OutsideHandler>> handlers, const Holder& holder,
                 StepKeeper& steps, std::function<void()> came_back, std::string name,
                 traces::Tracer* tracer)
    : holder_(holder),
      steps_(steps),
      came_back_(std::move(came_back)),
      name_(std::move(name)),
      tracer_(tracer),
      handlers_(std::move(handlers)) {
  for (const auto& handler : handlers_)
    threads_.emplace_back(
        [this, &handler = *handler](const std::stop_token& stop) { run(handler, stop); });
}

Callers::~Callers() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

void Callers::add(CallToMake& call) {
  const sync::Lock lock(mutex_);
  queue_.push_back(&call);
  call_there_.notify_one();
}

void Callers::run(OutsideHandler& handler, const std::stop_token& stop) {
  traces::Runs spans(tracer_, traces::Operation::call);
  for (;;) {
    CallToMake* call = nullptr;
    {
      sync::Lock lock(mutex_);
      if (!call_there_.wait(lock.waitable(), stop,
                            [this]() HAPAX_REQUIRES(mutex_) { return !queue_.empty(); }))
        return;
      call = queue_.front();
      queue_.pop_front();
    }
    make(handler, *call, spans);
    call->is_back = true;  // from here on its owner may be gone
    came_back_();
  }
}

// The lease is looked at last, because the process may have been frozen since it took the key or
// began to reconcile. By now it may have another lease, and another process may have the key.
void Callers::make(OutsideHandler& handler, CallToMake& call, traces::Runs& spans) const {
  const std::function<bool()> may_go_on = [&] {
    return holder_.may_call() == call.holder && !call.stop.stop_requested();
  };
  const auto may_call = [&] { return call.holder != 0 && may_go_on() && !call.cancelled; };
  const auto now = std::chrono::steady_clock::now();
  if (!may_call()) {
    call.end = {Ended::How::not_begun};
    return;
  }
  call.began = now;
  const traces::Received received{*call.message};
  const traces::Trace* const trace = spans.begin(std::span(&received, 1), name_, now);
  if (trace != nullptr) call.trace = *trace;
  const std::string traceparent = traces::Carried(*call.message, trace).traceparent();
  Steps steps({.identity = call.identity,
               .scope = call.scope,
               .token = call.token,
               .stop = call.stop.get_token(),
               .deadline = now + call.max_duration,
               .message = call.message},
              call.key, steps_, may_go_on);
  call.end = make_call(handler, *call.message,
                       Call({.key = call.key,
                             .token = call.token,
                             .deadline = now + call.max_duration,
                             .stop_token = call.stop.get_token(),
                             .traceparent = traceparent,
                             .steps = &steps}),
                       call.step, [&] {
                         steps.call_begins();
                         return may_call();
                       });
  heed_doubt(steps, call.end);
  const traces::Ended ended = ended_as(call.end);
  spans.end(std::span(&ended, 1), std::chrono::steady_clock::now());
}

}  // namespace hapax::outside
