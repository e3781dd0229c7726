#include "gate/desk.hpp"

#include <utility>

#include "flow/stored_response.hpp"
#include "gate/problem.hpp"
#include "gate/request_message.hpp"

namespace hapax::gate {
namespace {

// Injective: a key has no blank in front of the first one.
std::string flight_of(const Request& request) {
  return std::to_string(request.key.size()) + ' ' + request.key + request.tenant;
}

bool is_same(const Request& a, const Request& b, const key::Fingerprint& of_b) {
  const bool alike =
      a.method == b.method && a.path == b.path && a.query == b.query && a.body == b.body;
  return (alike && a.headers == b.headers) || fingerprint_of(a) == of_b;
}

// As a retry gets it.
Answer replayed(const Answer& answer) {
  Answer again = answer;
  again.how = observe::Answered::replayed;
  std::erase_if(again.response.headers,
                [](const auto& header) { return !flow::is_replayed(header.first); });
  return again;
}

// The ticket may live on in a queue, and must keep neither the connection nor the body.
void give(Ticket& ticket, Answer answer) {
  const Request released = std::exchange(ticket.request, {});
  const auto done = std::exchange(ticket.done, {});
  done(std::move(answer));
}

Answer full() {
  return unavailable("All lanes are busy, and the queue is full. Try again with the same key.");
}

}  // namespace

// False: there is no room.
bool Desk::place(const std::shared_ptr<Ticket>& ticket, bool even_if_full) {
  if (ticket->request.is_guarded()) {
    const auto flight = flights_.find(flight_of(ticket->request));
    if (flight != flights_.end()) {
      ticket->waits = true;
      ++waiting_count_;
      flight->second.push_back(ticket);
      waiting_.push_back(ticket);
      return true;
    }
  }
  if (ready_.size() >= queue_ && !even_if_full) return false;
  if (ticket->request.is_guarded()) flights_[flight_of(ticket->request)];
  ready_.push_back(ticket);
  some_.notify_one();
  return true;
}

void Desk::submit(std::shared_ptr<Ticket> ticket) {
  ticket->give_up = Clock::now() + wait_;
  bool placed = false;
  {
    const sync::Lock lock(mutex_);
    placed = !stopped_ && place(ticket, false);
  }
  if (!placed) give(*ticket, full());
}

std::shared_ptr<Ticket> Desk::take(std::chrono::milliseconds at_most) {
  sync::Lock lock(mutex_);
  const auto until = Clock::now() + at_most;
  while (ready_.empty() && !stopped_)
    if (some_.wait_until(lock.waitable(), until) == std::cv_status::timeout) break;
  if (ready_.empty()) return nullptr;
  auto ticket = std::move(ready_.front());
  ready_.pop_front();
  return ticket;
}

void Desk::finish(const std::shared_ptr<Ticket>& ticket, Executed executed) {
  answer_waiting(*ticket, executed);
  give(*ticket, std::move(executed.answer));
}

void Desk::give_up(const std::shared_ptr<Ticket>& ticket, Answer answer) {
  answer_waiting(*ticket, {answer, {}});
  const auto done = std::exchange(ticket->done, {});
  done(std::move(answer));
}

void Desk::answer_waiting(const Ticket& ticket, const Executed& executed) {
  std::vector<std::shared_ptr<Ticket>> waited;
  if (ticket.request.is_guarded()) {
    const sync::Lock lock(mutex_);
    const auto flight = flights_.find(flight_of(ticket.request));
    for (auto& one : flight->second) {
      if (!std::exchange(one->waits, false)) continue;
      --waiting_count_;
      waited.push_back(std::move(one));
    }
    flights_.erase(flight);
  }
  const Answer& answer = executed.answer;
  for (const auto& one : waited) {
    if (answer.how == observe::Answered::unavailable) {
      give(*one, answer);
    } else if (is_same(one->request, ticket.request, executed.fingerprint)) {
      give(*one, answer.is_stored() ? replayed(answer) : answer);
    } else if (answer.is_stored()) {
      give(*one, drifted());
    } else {
      const sync::Lock lock(mutex_);
      place(one, true);
    }
  }
}

void Desk::expire(Clock::time_point now) {
  std::vector<std::shared_ptr<Ticket>> expired;
  {
    const sync::Lock lock(mutex_);
    while (!waiting_.empty() && (!waiting_.front()->waits || waiting_.front()->give_up <= now)) {
      if (std::exchange(waiting_.front()->waits, false)) {
        --waiting_count_;
        flights_.at(flight_of(waiting_.front()->request)).pop_front();  // in the same order
        expired.push_back(waiting_.front());
      }
      waiting_.pop_front();
    }
  }
  for (const auto& ticket : expired) give(*ticket, in_flight());
}

void Desk::stop() {
  const sync::Lock lock(mutex_);
  stopped_ = true;
  some_.notify_all();
}

bool Desk::is_stopped() const {
  const sync::Lock lock(mutex_);
  return stopped_;
}

Desk::Counts Desk::counts() const {
  const sync::Lock lock(mutex_);
  return {ready_.size(), waiting_count_};
}

}  // namespace hapax::gate
