// Stands between connections and lanes: a bounded queue, and the requests that wait for others.
//
// Requests with one key and tenant are one flight. The first goes to a lane; the others wait here,
// without a lane or a PostgreSQL session. They share its answer if they are the same request.
//
// Each tenant has a line of its own. A lane takes the first ticket of the tenant of whom lanes have
// the fewest. So a tenant does not wait for the whole line of another one. If the desk keeps a
// lane, the last idle one takes only tickets of tenants of whom no lane has one. So it does not
// wait for another one's slow handlers either.
//
// Thread safety: all of it. The desk answers outside of its lock, on the thread that caused the
// answer.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gate/executor.hpp"
#include "gate/request.hpp"
#include "sync/mutex.hpp"

namespace hapax::gate {

using Clock = std::chrono::steady_clock;

// One request, until it is answered.
struct Ticket {
  Request request;
  std::function<void(Answer)> done;  // called once; any thread; must not block
  Clock::time_point give_up = {};    // when it stops waiting for its key
};

// Decides which tickets may share a transaction.
struct BatchRule {
  std::size_t lanes = 1;
  // How many requests may share a transaction with this one; 1: it runs alone.
  std::function<std::size_t(const Request&)> most;

  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // of their bodies together
};

class Desk {
 public:
  struct Counts {
    std::size_t queued = 0;
    std::size_t waiting = 0;
  };

  // `queue`: so many tickets wait for a lane, and as many for keys. `wait`: how long one waits for
  // its key. `keeps_a_lane`: as described above, once a second tenant has come.
  Desk(std::size_t queue, std::chrono::milliseconds wait, bool keeps_a_lane = false)
      : queue_(queue), wait_(wait), keeps_a_lane_(keeps_a_lane) {}

  // Queues the ticket, or lets it wait for its key. If there is no room, answers a ticket at once:
  // the newest one of the longest line.
  void submit(std::shared_ptr<Ticket> ticket);

  // For a lane. Nothing: none came in this time, or the desk is stopped.
  std::shared_ptr<Ticket> take(std::chrono::milliseconds at_most);

  // The same, with later tickets of its route that may share its transaction. A lane takes at most
  // its share of the waiting tickets, so that it leaves some to idle lanes.
  std::vector<std::shared_ptr<Ticket>> take(std::chrono::milliseconds at_most,
                                            const BatchRule& rule);

  // Puts a ticket back that was taken and did not run, as the first one of its line. Nothing
  // happens if it has been given up.
  void put_back(std::shared_ptr<Ticket> ticket);

  // Answers the ticket, and those that wait for it. Nothing happens if it has been given up.
  void finish(const std::shared_ptr<Ticket>& ticket, Executed executed);

  // The same for a ticket whose handler still runs and reads the request.
  void give_up(const std::shared_ptr<Ticket>& ticket, Answer answer);
  // The same for all tickets.
  void give_up_all(const Answer& answer);

  // Answers the tickets that have waited long enough. Call it often.
  void expire(Clock::time_point now);

  void stop();
  bool is_stopped() const;
  Counts counts() const;

 private:
  using Tickets = std::deque<std::shared_ptr<Ticket>>;
  struct Line {
    Tickets ready = {};                            // wait for a lane
    std::set<std::shared_ptr<Ticket>> taken = {};  // by lanes
  };

  static bool is_before(const Line* a, const Line* b);

  void answer_waiting(const Ticket& ticket, const Executed& executed);
  bool leave_lane(const std::shared_ptr<Ticket>& ticket);
  // How the caller's lane took it.
  struct First {
    std::shared_ptr<Ticket> ticket;
    bool by_last_lane = false;
  };
  First take_first(sync::Lock& lock, std::chrono::milliseconds at_most) HAPAX_REQUIRES(mutex_);
  bool is_last_lane() const HAPAX_REQUIRES(mutex_);
  Line* next_line() HAPAX_REQUIRES(mutex_);
  std::shared_ptr<Ticket> take_from(Line& line, std::size_t at) HAPAX_REQUIRES(mutex_);
  std::vector<Line*> lines_that_wait() HAPAX_REQUIRES(mutex_);
  // The ticket that has to be answered because there is no room: the one that came, or another that
  // it displaces. Nothing: there is room.
  struct WithoutRoom {
    std::shared_ptr<Ticket> ticket;
    bool holds_its_key = false;  // so that others may wait for it
  };
  WithoutRoom place(const std::shared_ptr<Ticket>& ticket, bool even_if_full)
      HAPAX_REQUIRES(mutex_);
  std::shared_ptr<Ticket> make_room_for(const std::string& tenant) HAPAX_REQUIRES(mutex_);
  std::shared_ptr<Ticket> make_wait_for(const std::string& tenant) HAPAX_REQUIRES(mutex_);
  void waits_no_more(const std::shared_ptr<Ticket>& ticket) HAPAX_REQUIRES(mutex_);

  const std::size_t queue_;
  const std::chrono::milliseconds wait_;
  const bool keeps_a_lane_;
  mutable sync::Mutex mutex_;
  std::condition_variable some_;
  // By tenant. Each has tickets that wait or are taken.
  std::unordered_map<std::string, Line> lines_ HAPAX_GUARDED_BY(mutex_);
  std::size_t ready_ HAPAX_GUARDED_BY(mutex_) = 0;  // in all lines
  std::size_t idle_ HAPAX_GUARDED_BY(mutex_) = 0;   // lanes that would take a ticket now
  std::string first_tenant_ HAPAX_GUARDED_BY(mutex_);
  bool has_several_tenants_ HAPAX_GUARDED_BY(mutex_) = false;
  std::unordered_map<std::string, Tickets> flights_ HAPAX_GUARDED_BY(mutex_);  // → who waits
  // Ordered by give_up. It holds exactly the tickets that wait in flights_.
  std::set<std::pair<Clock::time_point, std::shared_ptr<Ticket>>> waiting_ HAPAX_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::size_t> waits_of_ HAPAX_GUARDED_BY(mutex_);  // by tenant
  bool stopped_ HAPAX_GUARDED_BY(mutex_) = false;
};

}  // namespace hapax::gate
