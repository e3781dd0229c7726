#include "gate/handler_time.hpp"

#include <utility>

#include "gate/desk.hpp"

namespace hapax::gate {

void HandlerTime::serve(std::shared_ptr<Ticket> ticket) {
  const sync::Lock lock(mutex_);
  ticket_ = std::move(ticket);
}

void HandlerTime::begin() {
  const sync::Lock lock(mutex_);
  before_ = {};
  since_ = Clock::now();
  running_ = true;
}

void HandlerTime::pause() {
  const sync::Lock lock(mutex_);
  if (!std::exchange(running_, false)) return;
  before_ += Clock::now() - since_;
}

void HandlerTime::resume() {
  const sync::Lock lock(mutex_);
  since_ = Clock::now();
  running_ = true;
}

bool HandlerTime::end() {
  const sync::Lock lock(mutex_);
  running_ = false;
  return !given_up_;
}

bool HandlerTime::is_given_up() const {
  const sync::Lock lock(mutex_);
  return given_up_;
}

bool HandlerTime::done() {
  const sync::Lock lock(mutex_);
  running_ = false;
  ticket_.reset();
  return !std::exchange(given_up_, false);
}

std::shared_ptr<Ticket> HandlerTime::give_up(Clock::time_point now,
                                             std::chrono::milliseconds at_most) {
  const sync::Lock lock(mutex_);
  if (!running_ || given_up_ || before_ + (now - since_) < at_most) return nullptr;
  given_up_ = true;
  return ticket_;
}

}  // namespace hapax::gate
