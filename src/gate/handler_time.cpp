#include "gate/handler_time.hpp"

#include <stdexcept>
#include <utility>

#include "gate/desk.hpp"

namespace hapax::gate {

void HandlerTime::serve(std::shared_ptr<Ticket> ticket) {
  const sync::Lock lock(mutex_);
  ticket_ = std::move(ticket);
  batch_.clear();
  broken_up_ = late_ = false;
  own_ = {};
}

void HandlerTime::serve_batch(Tickets tickets, std::chrono::milliseconds at_most,
                              std::function<void()> cut) {
  const sync::Lock lock(mutex_);
  ticket_ = tickets.front();
  batch_ = std::move(tickets);
  cut_ = std::move(cut);
  until_ = Clock::now() + at_most;
  broken_up_ = late_ = false;
  own_ = {};
}

void HandlerTime::next(std::shared_ptr<Ticket> ticket) {
  const sync::Lock lock(mutex_);
  ticket_ = std::move(ticket);
  expect_in_time();
}

void HandlerTime::expect_in_time() {
  if (batch_.empty() || Clock::now() < until_) return;
  late_ = true;
  throw std::runtime_error("the handlers of a batch took too long");
}

void HandlerTime::begin() {
  const sync::Lock lock(mutex_);
  before_ = {};
  since_ = Clock::now();
  running_ = true;
}

void HandlerTime::pause() {
  const sync::Lock lock(mutex_);
  expect_in_time();
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
  if (running_) before_ += Clock::now() - since_;
  running_ = false;
  own_ += before_;
  return !given_up_ && !broken_up_ && !late_;
}

bool HandlerTime::is_given_up() const {
  const sync::Lock lock(mutex_);
  return given_up_;
}

bool HandlerTime::is_broken_up() const {
  const sync::Lock lock(mutex_);
  return broken_up_;
}

bool HandlerTime::is_late() const {
  const sync::Lock lock(mutex_);
  return late_;
}

std::shared_ptr<Ticket> HandlerTime::current() const {
  const sync::Lock lock(mutex_);
  return ticket_;
}

HandlerTime::Clock::duration HandlerTime::own() const {
  const sync::Lock lock(mutex_);
  return own_;
}

bool HandlerTime::done() {
  const sync::Lock lock(mutex_);
  running_ = broken_up_ = late_ = false;
  ticket_.reset();
  batch_.clear();
  return !std::exchange(given_up_, false);
}

std::shared_ptr<Ticket> HandlerTime::give_up(Clock::time_point now,
                                             std::chrono::milliseconds at_most) {
  const sync::Lock lock(mutex_);
  if (!running_ || given_up_ || before_ + (now - since_) < at_most) return nullptr;
  given_up_ = true;
  return ticket_;
}

HandlerTime::Tickets HandlerTime::break_up(Clock::time_point now) {
  const sync::Lock lock(mutex_);
  if (!running_ || batch_.empty() || broken_up_ || now < until_) return {};
  broken_up_ = true;
  cut_();
  Tickets others = std::move(batch_);
  batch_.clear();
  std::erase(others, ticket_);
  return others;
}

}  // namespace hapax::gate
