#include "outside/callers.hpp"

namespace hapax::outside {

Callers::Callers(std::vector<std::unique_ptr<OutsideHandler>> handlers, const Lease& lease,
                 std::function<void()> came_back)
    : lease_(lease), came_back_(std::move(came_back)), handlers_(std::move(handlers)) {
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
    make(handler, *call);
    call->is_back = true;  // whose it is may be gone now
    came_back_();
  }
}

// The lease is looked at last: the process may have been frozen since the key was taken, or since
// it began to reconcile.
void Callers::make(OutsideHandler& handler, CallToMake& call) const {
  const auto may_call = [&] {
    return lease_.may_call() && !call.cancelled && !call.stop.stop_requested();
  };
  const auto now = std::chrono::steady_clock::now();
  if (!may_call()) {
    call.end = {Ended::How::not_begun};
    return;
  }
  call.began = now;
  call.end = make_call(handler, *call.message,
                       Call({.key = call.key,
                             .token = call.token,
                             .deadline = now + call.max_duration,
                             .stop_token = call.stop.get_token()}),
                       call.step, may_call);
}

}  // namespace hapax::outside
