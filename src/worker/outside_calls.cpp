#include "worker/outside_calls.hpp"

#include <algorithm>

#include "flow/crash_point.hpp"
#include "flow/verdicts.hpp"
#include "key/identity.hpp"
#include "observe/log.hpp"
#include "worker/stoppable_wait.hpp"

namespace hapax::worker {
namespace {

using flow::Outcome;
using outside::Ended;
using outside::Step;
using outside::Then;
using std::chrono::milliseconds;
namespace log = observe::log;

constexpr milliseconds kLook{100};  // between two looks at calls that run
constexpr milliseconds kReconnectWait{250};
constexpr milliseconds kGrace{10'000};  // for a call that was asked to stop

milliseconds shortest_lease(const std::vector<flow::Route>& routes) {
  milliseconds shortest = milliseconds::max();
  for (const flow::Route& route : routes)
    if (route.outside) shortest = std::min(shortest, route.outside->lease);
  return shortest;
}

}  // namespace

OutsideCalls::OutsideCalls(LaneSetup& setup, const std::vector<flow::Route>& routes,
                           std::vector<Handlers> handlers, std::uint64_t seed)
    : setup_(setup),
      routes_(routes),
      holder_(shortest_lease(routes)),
      random_(seed),
      settler_(setup),
      session_(setup.connect),
      of_route_(routes.size()) {
  const auto came_back = [this] {
    {
      const sync::Lock lock(mutex_);
      came_back_.notify_all();
    }
    setup_.dispatcher.wake_calls();
  };
  for (std::size_t i = 0; i < routes.size(); ++i)
    if (routes[i].outside) metrics_.emplace(i, setup.metrics.calls(routes[i].topic));
  for (Handlers& of_route : handlers)
    callers_.push_back(of_route.empty() ? nullptr
                                        : std::make_unique<outside::Callers>(
                                              std::move(of_route), holder_.lease, came_back));
  watcher_ = std::jthread([this](const std::stop_token& stop) {
    for (; !stop.stop_requested(); wait_unless_stopped(stop, kLook)) watch();
  });
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

OutsideCalls::~OutsideCalls() { stop(); }

void OutsideCalls::stop() {
  thread_.request_stop();
  {
    const sync::Lock lock(mutex_);
    for (Flight& flight : in_flight_) flight.cancelled = true;
  }
  setup_.dispatcher.wake_calls();
}

void OutsideCalls::ask_to_stop() {
  const sync::Lock lock(mutex_);
  for (Flight& flight : in_flight_) flight.stop.request_stop();
}

void OutsideCalls::run(const std::stop_token& stop) {
  for (;;) {
    const bool reachable = turn(!stop.stop_requested());
    // What PostgreSQL cannot be told is taken over once the lease is over.
    if (stop.stop_requested() && !is_calling() && (done_.empty() || !reachable)) break;
    setup_.dispatcher.wait_for_calls(next_look());
  }
  for (auto flight = done_.begin(); flight != done_.end();) flight = finish(done_, flight);
  try {
    if (holder_.id != 0 && session_.is_open()) store::end_holder(*session_, holder_.id);
  } catch (const store::DatabaseError&) {
    // Others wait for the end of the lease.
  }
}

bool OutsideCalls::is_calling() const {
  const sync::Lock lock(mutex_);
  return !in_flight_.empty() || replayed_.second != nullptr;
}

Clock::time_point OutsideCalls::next_look() const {
  const auto now = Clock::now();
  if (is_calling() || !done_.empty()) return now + kLook;
  if (holder_.id == 0) return std::max(try_again_, now + kLook);
  return std::max({try_again_, holder_.lease.renew_at(), now + milliseconds(1)});
}

// False if PostgreSQL is away.
bool OutsideCalls::turn(bool takes) {
  if (Clock::now() < try_again_) return false;
  const bool was_open = session_.is_open();
  std::string why;
  if (!session_.is_reachable(why)) {
    setup_.postgres.went_down("connecting", {}, why);
    try_again_ = Clock::now() + kReconnectWait;
    return false;
  }
  if (!was_open) setup_.postgres.came_up();
  try {
    renew();
    keep_ended();
    count_unknown();
    if (takes && holder_.lease.may_call()) take();
    return true;
  } catch (const store::DatabaseError& error) {
    session_.drop();
    try_again_ = Clock::now() + kReconnectWait;
    const bool lost = error.sqlstate().empty() || error.sqlstate().starts_with("57P");
    if (!lost) setup_.postgres.went_down("calling to the outside", error.sqlstate(), error.what());
    return false;
  }
}

void OutsideCalls::renew() {
  const auto asked = Clock::now();
  if (holder_.id == 0) {
    holder_.id = store::register_holder(*session_, setup_.group, setup_.worker_name,
                                        holder_.lease.duration());
    holder_.lease.granted(asked);
  } else if (asked >= holder_.lease.renew_at()) {
    if (store::renew_holder(*session_, holder_.id, holder_.lease.duration())) {
      holder_.lease.granted(asked);
      return;
    }
    log::error("lease_lost", {{"holder", holder_.id.load()}},
               "PostgreSQL has lost this worker's lease (a failover or a restore); its calls are "
               "asked to stop, and others may take them over");
    holder_.lease.lost();
    watch();
    holder_.id = 0;
  }
}

// Asks calls to stop whose time is over, or whose lease is.
void OutsideCalls::watch() {
  const auto now = Clock::now();
  const bool may_call = holder_.id == 0 || holder_.lease.may_call(now);
  const sync::Lock lock(mutex_);
  for (Flight& flight : in_flight_) watch(flight, flight.source.topic, now, may_call);
  if (replayed_.second != nullptr) watch(*replayed_.second, replayed_.first, now, may_call);
}

void OutsideCalls::watch(outside::CallToMake& call, const std::string& topic, Clock::time_point now,
                         bool may_call) {
  if (!may_call) call.stop.request_stop();
  const Clock::time_point began = call.began;
  if (began == Clock::time_point{} || call.is_back || now < began + call.max_duration) return;
  call.stop.request_stop();
  if (now < began + call.max_duration + kGrace || hangs_.exchange(true)) return;
  log::error("call_hangs",
             {{"topic", topic},
              {"partition", call.message->partition()},
              {"offset", call.message->offset()},
              {"seconds", (now - began) / std::chrono::seconds(1)}},
             "a call did not return after outside.max_duration, though it was asked to stop; the "
             "process ends, and another one takes the key over");
}

void OutsideCalls::make_for_replay(const flow::Route& route, outside::CallToMake& call) {
  sync::Lock lock(mutex_);
  replayed_ = {route.topic, &call};
  callers_[static_cast<std::size_t>(&route - routes_.data())]->add(call);
  came_back_.wait(lock.waitable(), [&] { return call.is_back.load(); });
  replayed_.second = nullptr;
}

std::vector<OutsideCalls::Running> OutsideCalls::running() const {
  const sync::Lock lock(mutex_);
  std::vector<Running> running;
  for (const Flight& flight : in_flight_)
    if (flight.began.load() != Clock::time_point{} && !flight.is_back)
      running.push_back({flight.source, flight.task.route.handler.name, flight.began});
  return running;
}

// Keys may be taken a little before a thread is free, but not if that could make their calls
// doubtful.
std::size_t OutsideCalls::room(std::size_t route) const {
  if (!callers_[route]) return 0;
  const std::size_t threads = callers_[route]->size();
  const bool is_repeatable = routes_[route].outside->repeat != config::Repeat::never;
  const std::size_t capacity = threads + (is_repeatable ? threads / 8 : 0);
  return capacity - std::min(capacity, of_route_[route]);
}

void OutsideCalls::take() {
  Dispatcher::Calls calls =
      setup_.dispatcher.take_calls([this](std::size_t route) { return room(route); });
  if (calls.works.empty()) return;
  Flights flights;
  for (Work& work : calls.works) {
    const flow::Task task = task_of(setup_, work, work.items.front(), calls.cautious);
    flights.emplace_back(std::move(work), task);
    ++of_route_[flights.back().route()];
  }
  try {
    prepare(flights);
    if (flights.empty()) return;
    std::vector<store::CallRequest> requests;
    for (Flight& flight : flights)
      requests.push_back({flight.claim(), calls.cautious, flight.item().uncalled});
    for (Flight& flight : flights) flight.item().uncalled = true;  // should the answer be lost
    const std::vector<store::Take> takes = store::take_calls(*session_, holder_.id, requests);
    flow::crash_point("call_taken");
    auto take = takes.begin();
    for (auto flight = flights.begin(); flight != flights.end(); ++take) {
      flight->item().uncalled = false;
      const auto current = flight++;
      if (take->is_held) {
        settle(flights, current,
               flow::to_call("key_started", current->task.attempts, flow::kKeyHeldWait));
      } else if (!take->taken) {
        pass_to_lane(flights, current);
      } else {
        current->taken = *take->taken;
        begin(flights, current);
      }
    }
  } catch (const store::DatabaseError& error) {
    for (auto flight = flights.begin(); flight != flights.end();)
      flight = settle(flights, flight, flow::away(error.what()));
    throw;
  }
}

// Derives keys. What needs no call, or must be judged first, goes to a lane.
void OutsideCalls::prepare(Flights& flights) {
  for (auto flight = flights.begin(); flight != flights.end();) {
    const flow::Task& task = flight->task;
    if (task.breaker->is_open()) {
      flight = settle(flights, flight, flow::held());
      continue;
    }
    key::Derived derived = key::identify(task.route.key, task.message, task.generation);
    auto* const identity = std::get_if<key::Identity>(&derived);
    if (task.skip != nullptr || identity == nullptr) {
      flight = pass_to_lane(flights, flight);
      continue;
    }
    flight->identity = std::move(*identity);
    std::string key = outside::key_to_hand_on(task.route.key.scope, flight->identity);
    if (!keys_.insert(key).second) {
      flight =
          settle(flights, flight, flow::to_call("key_started", task.attempts, flow::kKeyHeldWait));
      continue;
    }
    flight->key = std::move(key);
    if (std::string why; !session_.is_reachable(why))
      throw store::DatabaseError({store::Fault::Kind::connection, "", why});
    if (session_.is_behind_a_loss(task.incarnation))
      flight = settle(flights, flight, flow::later("tail_lost", task.attempts));
    else
      flight = is_for_lane(*flight) ? pass_to_lane(flights, flight) : std::next(flight);
  }
  // The last one may have dropped it.
  if (std::string why; !flights.empty() && !session_.is_reachable(why))
    throw store::DatabaseError({store::Fault::Kind::connection, "", why});
}

// Whether it is remembered, or must be and is not: a lane finds that out from its key, too.
bool OutsideCalls::is_for_lane(Flight& flight) {
  const flow::Task& task = flight.task;
  const bool is_below = task.message.offset() < task.guard_below;
  if (!is_below && !task.remembered) return false;
  store::Transaction transaction(*session_);
  const store::Known known = store::known_coordinates(transaction, flight.source,
                                                      task.route.key.scope, task.route.retention);
  return known.dead_letter || (is_below && !known.attempted);
}

// Does what the policy plans for a key that is ours now.
void OutsideCalls::begin(Flights& flights, Flights::iterator flight) {
  const flow::Task& task = flight->task;
  const store::TakenCall& taken = flight->taken;
  const outside::Plan plan = outside::plan(
      flight->rules(), {taken.calls, taken.crashes, taken.age, taken.answer.has_value()},
      task.route.retry.max_crashes);
  if (plan.step == Step::book) {
    flight->item().answered = flow::Answered{taken.token, *taken.answer};
    pass_to_lane(flights, flight);
  } else if (plan.step == Step::give_up) {
    settle(flights, flight,
           end(*flight, store::CallEnd::unknown, "outcome_unknown", std::string(plan.why),
               task.attempts));
  } else if (task.route.retry.exhausted(task.attempts, task.failing)) {
    // The process ended between the last attempt and its dead letter, or retry was lowered since.
    flight->end = {taken.calls <= 1 ? Ended::How::not_called : Ended::How::failed,
                   "no attempt is left"};
    const bool never_called = taken.calls <= 1;
    settle(flights, flight,
           end(*flight, never_called ? store::CallEnd::uncalled : store::CallEnd::unknown,
               never_called ? "attempts_exhausted" : "outcome_unknown", "no attempt is left",
               task.attempts));
  } else {
    flight->message = &task.message;
    flight->token = taken.token;
    flight->step = plan.step;
    flight->max_duration = flight->rules().max_duration;
    const sync::Lock lock(mutex_);
    in_flight_.splice(in_flight_.end(), flights, flight);
    metrics_.at(flight->route()).began();
    callers_[flight->route()]->add(*flight);
  }
}

OutsideCalls::Flights::iterator OutsideCalls::settle(Flights& flights, Flights::iterator flight,
                                                     Outcome outcome) {
  flight->task.breaker->learn(outcome);
  settler_.settle(std::span(&flight->work, 1), std::span(&outcome, 1), Clock::now());
  return finish(flights, flight);
}

OutsideCalls::Flights::iterator OutsideCalls::pass_to_lane(Flights& flights,
                                                           Flights::iterator flight) {
  flight->item().for_lane = true;
  flight->item().not_before = {};
  return finish(flights, flight);
}

OutsideCalls::Flights::iterator OutsideCalls::finish(Flights& flights, Flights::iterator flight) {
  keys_.erase(flight->key);
  --of_route_[flight->route()];
  std::vector<Work> works;
  works.push_back(std::move(flight->work));
  const auto next = flights.erase(flight);
  setup_.dispatcher.finish(std::move(works));
  return next;
}

}  // namespace hapax::worker
