// The handler that a lane runs now, and how much time of its own it has taken. The time of its
// statements is PostgreSQL's.
//
// Thread safety: all of it. The lane calls everything but give_up().
#pragma once

#include <chrono>
#include <memory>

#include "sync/mutex.hpp"

namespace hapax::gate {

struct Ticket;

class HandlerTime {
 public:
  using Clock = std::chrono::steady_clock;

  // The lane has taken this ticket.
  void serve(std::shared_ptr<Ticket> ticket);

  // Its handler begins. May follow resume(), if the handler runs once more.
  void begin();

  // PostgreSQL runs a statement of the handler, whose time is not the handler's.
  void pause();
  void resume();

  // The handler is back. False: the ticket was given up, and nothing may be committed.
  bool end();

  bool is_given_up() const;

  // The lane is done with the ticket. False: it was given up, and is answered.
  bool done();

  // The ticket, from now on the caller's to answer, if its handler took `at_most`. Else null.
  std::shared_ptr<Ticket> give_up(Clock::time_point now, std::chrono::milliseconds at_most);

 private:
  mutable sync::Mutex mutex_;
  std::shared_ptr<Ticket> ticket_ HAPAX_GUARDED_BY(mutex_);
  bool running_ HAPAX_GUARDED_BY(mutex_) = false;  // handler's own code
  bool given_up_ HAPAX_GUARDED_BY(mutex_) = false;
  Clock::time_point since_ HAPAX_GUARDED_BY(mutex_);   // while running_
  Clock::duration before_ HAPAX_GUARDED_BY(mutex_){};  // its own time before that
};

}  // namespace hapax::gate
