#include "gate/desk.hpp"

#include <algorithm>
#include <utility>

#include "flow/stored_response.hpp"
#include "gate/problem.hpp"
#include "gate/request_message.hpp"

namespace hapax::gate {
namespace {

// How many tickets that do not fit it looks at, to find requests that may share a transaction.
constexpr std::size_t kLooksAt = 64;

// Different pairs of key and tenant give different texts, because the key's size comes first.
std::string flight_of(const Request& request) {
  return std::to_string(request.key.size()) + ' ' + request.key + request.tenant;
}

bool is_same(const Request& a, const Request& b, const key::Fingerprint& of_b) {
  const bool alike =
      a.method == b.method && a.path == b.path && a.query == b.query && a.body == b.body;
  return (alike && a.headers == b.headers) || fingerprint_of(a) == of_b;
}

// The answer as a retry gets it.
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

// It is nearly always the front. Only tickets that were placed again are behind younger ones.
void erase(std::deque<std::shared_ptr<Ticket>>& waiters, const std::shared_ptr<Ticket>& ticket) {
  if (!waiters.empty() && waiters.front() == ticket)
    waiters.pop_front();
  else
    std::erase(waiters, ticket);
}

}  // namespace

Desk::WithoutRoom Desk::place(const std::shared_ptr<Ticket>& ticket, bool even_if_full) {
  const Request& request = ticket->request;
  if (request.is_guarded()) {
    const auto flight = flights_.find(flight_of(request));
    if (flight != flights_.end()) {
      WithoutRoom displaced;
      if (waiting_.size() >= queue_ && !even_if_full) {
        displaced.ticket = make_wait_for(request.tenant);
        if (!displaced.ticket) return {ticket};
      }
      flight->second.push_back(ticket);
      waiting_.emplace(ticket->give_up, ticket);
      ++waits_of_[request.tenant];
      return displaced;
    }
  }
  WithoutRoom displaced;
  if (ready_ >= queue_ && !even_if_full) {
    displaced = {make_room_for(request.tenant), true};
    if (!displaced.ticket) return {ticket};
  }
  if (request.is_guarded()) flights_[flight_of(request)];
  lines_[request.tenant].ready.push_back(ticket);
  ++ready_;
  if (first_tenant_.empty()) first_tenant_ = request.tenant;
  has_several_tenants_ = has_several_tenants_ || request.tenant != first_tenant_;
  some_.notify_one();
  return displaced;
}

// Nothing: no line is longer than this tenant's would be.
std::shared_ptr<Ticket> Desk::make_room_for(const std::string& tenant) {
  const auto own = lines_.find(tenant);
  const std::size_t would_have = 1 + (own == lines_.end() ? 0 : own->second.ready.size());
  const auto longest = std::ranges::max_element(
      lines_, {}, [](const auto& line) { return line.second.ready.size(); });
  if (longest == lines_.end() || longest->second.ready.size() <= would_have) return nullptr;
  auto ticket = std::move(longest->second.ready.back());
  longest->second.ready.pop_back();
  --ready_;
  return ticket;
}

// The same of those that wait for keys. The ticket waits no more then.
std::shared_ptr<Ticket> Desk::make_wait_for(const std::string& tenant) {
  const auto own = waits_of_.find(tenant);
  const auto most =
      std::ranges::max_element(waits_of_, {}, [](const auto& of) { return of.second; });
  if (most == waits_of_.end() || most->second <= 1 + (own == waits_of_.end() ? 0 : own->second))
    return nullptr;
  const auto newest = std::find_if(waiting_.rbegin(), waiting_.rend(), [&](const auto& one) {
    return one.second->request.tenant == most->first;
  });
  auto ticket = newest->second;
  std::erase(flights_.at(flight_of(ticket->request)), ticket);
  waits_no_more(ticket);
  return ticket;
}

void Desk::waits_no_more(const std::shared_ptr<Ticket>& ticket) {
  waiting_.erase({ticket->give_up, ticket});
  const auto of_tenant = waits_of_.find(ticket->request.tenant);
  if (--of_tenant->second == 0) waits_of_.erase(of_tenant);
}

void Desk::submit(std::shared_ptr<Ticket> ticket) {
  ticket->give_up = Clock::now() + wait_;
  WithoutRoom without_room{ticket};
  {
    const sync::Lock lock(mutex_);
    if (!stopped_) without_room = place(ticket, false);
  }
  if (!without_room.ticket) return;
  if (without_room.holds_its_key) answer_waiting(*without_room.ticket, {full(), {}});
  give(*without_room.ticket, full());
}

std::shared_ptr<Ticket> Desk::take(std::chrono::milliseconds at_most) {
  sync::Lock lock(mutex_);
  return take_first(lock, at_most).ticket;
}

std::vector<std::shared_ptr<Ticket>> Desk::take(std::chrono::milliseconds at_most,
                                                const BatchRule& rule) {
  sync::Lock lock(mutex_);
  std::vector<std::shared_ptr<Ticket>> taken;
  const std::size_t waited = ready_;
  First first = take_first(lock, at_most);
  if (!first.ticket) return taken;
  taken.push_back(std::move(first.ticket));
  const Request& request = taken.front()->request;
  std::size_t bytes = request.body.size();
  std::size_t most = (waited + rule.lanes - 1) / rule.lanes;
  if (most > 1) most = std::min(most, rule.most(request));
  if (most <= 1) return taken;
  std::size_t looks = kLooksAt;
  for (Line* const line : lines_that_wait()) {
    if (first.by_last_lane && line != &lines_.at(request.tenant)) continue;
    for (std::size_t at = 0; taken.size() < most && at < line->ready.size() && looks > 0;) {
      const Request& other = line->ready[at]->request;
      const bool fits = other.route == request.route &&
                        bytes + other.body.size() <= BatchRule::kMostBytes && rule.most(other) > 1;
      if (!fits) {
        ++at;
        --looks;
        continue;
      }
      bytes += other.body.size();
      taken.push_back(take_from(*line, at));
    }
  }
  return taken;
}

// Whether a lane takes a ticket of `a` sooner. Precondition: in both a ticket waits.
bool Desk::is_before(const Line* a, const Line* b) {
  const auto came = [](const Line* line) { return line->ready.front()->give_up; };
  return std::pair(a->taken.size(), came(a)) < std::pair(b->taken.size(), came(b));
}

std::vector<Desk::Line*> Desk::lines_that_wait() {
  std::vector<Line*> lines;
  for (auto& [tenant, line] : lines_)
    if (!line.ready.empty()) lines.push_back(&line);
  std::ranges::sort(lines, is_before);
  return lines;
}

std::shared_ptr<Ticket> Desk::take_from(Line& line, std::size_t at) {
  auto ticket = std::move(line.ready[at]);
  line.ready.erase(line.ready.begin() + static_cast<Tickets::difference_type>(at));
  --ready_;
  line.taken.insert(ticket);
  return ticket;
}

// Precondition: the caller's lane counts as idle.
bool Desk::is_last_lane() const {
  return keeps_a_lane_ && has_several_tenants_ && !stopped_ && idle_ == 1;
}

// Nothing: the caller's lane takes no ticket now.
Desk::Line* Desk::next_line() {
  const bool is_last = is_last_lane();
  Line* next = nullptr;
  for (auto& [tenant, line] : lines_)
    if (!line.ready.empty() && !(is_last && !line.taken.empty()) &&
        (next == nullptr || is_before(&line, next)))
      next = &line;
  return next;
}

Desk::First Desk::take_first(sync::Lock& lock, std::chrono::milliseconds at_most) {
  const auto until = Clock::now() + at_most;
  ++idle_;
  Line* line = next_line();
  // A busy lane only looks, and must not count as idle while others do.
  for (bool waits = at_most.count() > 0; waits && line == nullptr && !stopped_; line = next_line())
    waits = some_.wait_until(lock.waitable(), until) != std::cv_status::timeout;
  const bool by_last_lane = is_last_lane();
  --idle_;
  if (line == nullptr) return {};
  return {take_from(*line, 0), by_last_lane};
}

// False: the ticket was given up. Precondition: a lane has taken it.
bool Desk::leave_lane(const std::shared_ptr<Ticket>& ticket) {
  const sync::Lock lock(mutex_);
  const auto line = lines_.find(ticket->request.tenant);
  if (line == lines_.end() || line->second.taken.erase(ticket) == 0) return false;
  if (line->second.taken.empty() && line->second.ready.empty()) lines_.erase(line);
  return true;
}

void Desk::put_back(std::shared_ptr<Ticket> ticket) {
  const sync::Lock lock(mutex_);
  const auto line = lines_.find(ticket->request.tenant);
  if (line == lines_.end() || line->second.taken.erase(ticket) == 0) return;
  line->second.ready.push_front(std::move(ticket));
  ++ready_;
  some_.notify_one();
}

void Desk::finish(const std::shared_ptr<Ticket>& ticket, Executed executed) {
  if (!leave_lane(ticket)) return;
  answer_waiting(*ticket, executed);
  give(*ticket, std::move(executed.answer));
}

void Desk::give_up(const std::shared_ptr<Ticket>& ticket, Answer answer) {
  if (!leave_lane(ticket)) return;
  answer_waiting(*ticket, {answer, {}});
  const auto done = std::exchange(ticket->done, {});
  done(std::move(answer));
}

void Desk::give_up_all(const Answer& answer) {
  Tickets all;
  {
    const sync::Lock lock(mutex_);
    for (auto& [tenant, line] : lines_) {
      while (!line.ready.empty()) take_from(line, 0);
      all.insert(all.end(), line.taken.begin(), line.taken.end());
    }
  }
  for (const auto& ticket : all) give_up(ticket, answer);
}

void Desk::answer_waiting(const Ticket& ticket, const Executed& executed) {
  if (!ticket.request.is_guarded()) return;
  Tickets waited;
  {
    const sync::Lock lock(mutex_);
    const auto flight = flights_.find(flight_of(ticket.request));
    waited = std::move(flight->second);
    flights_.erase(flight);
    for (const auto& one : waited) waits_no_more(one);
  }
  const Answer& answer = executed.answer;
  std::vector<std::pair<std::shared_ptr<Ticket>, Answer>> answered;
  Tickets others;
  for (auto& one : waited) {
    if (answer.how == observe::Answered::unavailable)
      answered.emplace_back(std::move(one), answer);
    else if (is_same(one->request, ticket.request, executed.fingerprint))
      answered.emplace_back(std::move(one), answer.is_stored() ? replayed(answer) : answer);
    else if (answer.is_stored())
      answered.emplace_back(std::move(one), drifted());
    else
      others.push_back(std::move(one));
  }
  {
    const sync::Lock lock(mutex_);
    for (const auto& one : others) place(one, true);
  }
  for (auto& [one, its] : answered) give(*one, std::move(its));  // may submit others meanwhile
}

void Desk::expire(Clock::time_point now) {
  Tickets expired;
  {
    const sync::Lock lock(mutex_);
    while (!waiting_.empty() && waiting_.begin()->first <= now) {
      const auto ticket = waiting_.begin()->second;
      if (const auto flight = flights_.find(flight_of(ticket->request)); flight != flights_.end())
        erase(flight->second, ticket);
      expired.push_back(ticket);
      waits_no_more(ticket);
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
  return {ready_, waiting_.size()};
}

}  // namespace hapax::gate
