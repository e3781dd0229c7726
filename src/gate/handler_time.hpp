// The handler that a lane runs now, and how much time of its own it has taken. The time of its
// statements does not count.
//
// Thread safety: all of it. The lane calls everything but give_up().
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "sync/mutex.hpp"

namespace hapax::gate {

struct Ticket;

class HandlerTime {
 public:
  using Clock = std::chrono::steady_clock;

  using Tickets = std::vector<std::shared_ptr<Ticket>>;

  // The lane has taken this ticket.
  void serve(std::shared_ptr<Ticket> ticket);

  // The lane runs the handlers of these in one transaction, for at most `at_most`. `cut` ends its
  // session, and is called only while a handler runs its own code.
  void serve_batch(Tickets tickets, std::chrono::milliseconds at_most, std::function<void()> cut);

  // The next handler is that of this ticket. Throws: std::runtime_error if the batch took too long.
  void next(std::shared_ptr<Ticket> ticket);

  // Its handler begins. May follow resume(), if the handler runs once more.
  void begin();

  // PostgreSQL runs a statement of the handler, whose time is not the handler's.
  // Throws: std::runtime_error if its batch took too long.
  void pause();
  void resume();

  // The handler is back. False: the ticket was given up, or its transaction was broken up or is
  // late. Then nothing may be committed.
  bool end();

  bool is_given_up() const;
  // Whether of the batch's tickets only the one whose handler ran is still the lane's.
  bool is_broken_up() const;
  // Whether the batch took too long.
  bool is_late() const;
  // The ticket whose handler ran last.
  std::shared_ptr<Ticket> current() const;

  // The handlers' own time since the lane took what it serves.
  Clock::duration own() const;

  // The lane is done with the ticket. False: it was given up, and is answered.
  bool done();

  // If the handler took `at_most`, returns its ticket, and from then on the caller must answer it.
  // Else null.
  std::shared_ptr<Ticket> give_up(Clock::time_point now, std::chrono::milliseconds at_most);

  // If the batch took too long, ends its session and returns the tickets but the one whose handler
  // runs. From then on the caller must run them. Else none.
  Tickets break_up(Clock::time_point now);

 private:
  void expect_in_time() HAPAX_REQUIRES(mutex_);

  mutable sync::Mutex mutex_;
  std::shared_ptr<Ticket> ticket_ HAPAX_GUARDED_BY(mutex_);
  bool running_ HAPAX_GUARDED_BY(mutex_) = false;  // handler's own code
  bool given_up_ HAPAX_GUARDED_BY(mutex_) = false;
  Clock::time_point since_ HAPAX_GUARDED_BY(mutex_);   // while running_
  Clock::duration before_ HAPAX_GUARDED_BY(mutex_){};  // its own time before that
  Clock::duration own_ HAPAX_GUARDED_BY(mutex_){};     // of all handlers that are back

  Tickets batch_ HAPAX_GUARDED_BY(mutex_);  // empty: the ticket is alone
  std::function<void()> cut_ HAPAX_GUARDED_BY(mutex_);
  Clock::time_point until_ HAPAX_GUARDED_BY(mutex_);
  bool late_ HAPAX_GUARDED_BY(mutex_) = false;
  bool broken_up_ HAPAX_GUARDED_BY(mutex_) = false;
};

}  // namespace hapax::gate
