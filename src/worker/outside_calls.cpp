#include "worker/outside_calls.hpp"

#include <algorithm>

#include "flow/call_account.hpp"
#include "flow/crash_point.hpp"
#include "flow/verdicts.hpp"
#include "key/identity.hpp"
#include "observe/log.hpp"
#include "worker/stoppable_wait.hpp"

namespace hapax::worker {
namespace {

using flow::Outcome;
using outside::Step;
using std::chrono::milliseconds;
namespace log = observe::log;

constexpr milliseconds kLook{100};  // at calls that run, or wait for a lane
constexpr milliseconds kReconnectWait{250};

milliseconds shortest_lease(const std::vector<flow::Route>& routes) {
  milliseconds shortest = milliseconds::max();
  for (const flow::Route& route : routes)
    if (route.outside) shortest = std::min(shortest, route.outside->lease);
  return shortest;
}

milliseconds age_of(const Message& message) {
  const auto sent = message.timestamp();
  if (!sent) return milliseconds(0);
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now() - *sent);
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
      of_route_(routes.size()),
      steps_([&setup] { setup.dispatcher.wake_calls(); }),
      in_flight_(setup.dispatcher, routes, std::move(handlers), holder_, steps_, setup.tracer) {
  for (std::size_t i = 0; i < routes.size(); ++i) {
    if (routes[i].outside) metrics_.emplace(i, setup.metrics.calls(routes[i].topic));
    answers_.push_back(std::make_shared<std::atomic<std::size_t>>(0));
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

OutsideCalls::~OutsideCalls() {
  stop();
  give_up();
}

void OutsideCalls::stop() {
  thread_.request_stop();
  in_flight_.stop();
  setup_.dispatcher.wake_calls();
}

void OutsideCalls::give_up() {
  gives_up_ = true;
  setup_.dispatcher.wake_calls();
}

void OutsideCalls::run(const std::stop_token& stop) {
  for (;;) {
    const bool takes = !stop.stop_requested();
    const bool works = turn(takes);
    setup_.dispatcher.let_calls_run(takes && works && holder_.may_call() != 0);
    // A replay has its key in hand until PostgreSQL knows what came of its call.
    if (stop.stop_requested() && !in_flight_.any() && (holder_.keys.empty() || gives_up_)) break;
    setup_.dispatcher.wait_for_calls(takes ? next_look() : Clock::now() + kLook);
  }
  for (auto flight = done_.begin(); flight != done_.end();) flight = finish(done_, flight);
  end_lease();
}

// No call begins any more. So other workers need not wait until the lease runs out.
void OutsideCalls::end_lease() {
  holder_.lease.lost();
  try {
    if (holder_.id == 0 || !session_.is_open()) return;
    holder_.keys.give_back(*session_);
    store::end_holder(*session_, holder_.id);
  } catch (const store::DatabaseError&) {
    // The lease runs out by itself, and other workers wait for that.
  }
}

Clock::time_point OutsideCalls::next_look() const {
  const auto now = Clock::now();
  if (in_flight_.any() || !done_.empty() || waits_for_lanes_) return now + kLook;
  if (holder_.id == 0) return std::max(try_again_, now + kLook);
  const auto renew_in = holder_.lease.renew_at() - outside::Lease::Clock::now();
  const auto due = std::min(now + renew_in, count_again_);
  return std::max({try_again_, due, now + milliseconds(1)});
}

// False if PostgreSQL is away, or refuses.
bool OutsideCalls::turn(bool takes) {
  if (Clock::now() < try_again_) return false;
  const bool was_open = session_.is_open();
  std::string why;
  const auto tried_at = PostgresState::Clock::now();
  if (!session_.is_reachable(why)) {
    setup_.postgres.went_down("connecting", {}, why, tried_at);
    try_again_ = Clock::now() + kReconnectWait;
    return false;
  }
  if (!was_open) setup_.postgres.came_up();
  try {
    renew();
    holder_.keys.give_back(*session_);
    steps_.serve(*session_);
    keep_ended();
    count_unknown();
    if (takes && holder_.may_call() != 0) take();
    said_.clear();
    return true;
  } catch (const store::DatabaseError& error) {
    delayed(error);
    try_again_ = Clock::now() + kReconnectWait;
    return false;
  }
}

// The next turn tries again.
void OutsideCalls::delayed(const store::DatabaseError& error) {
  using store::FailureClass;
  session_.drop();
  const FailureClass failure = store::classify(store::Phase::account, error.fault());
  if (failure == FailureClass::in_doubt) return;
  if (failure == FailureClass::outage) {
    if (!store::may_be_a_lost_session(error.sqlstate()))
      setup_.postgres.went_down("calling to the outside", error.sqlstate(), error.what());
    return;
  }
  if (std::exchange(said_, error.what()) == error.what()) return;
  log::warning("calls_delayed", {{"sqlstate", error.sqlstate()}, {"error", error.what()}},
               "PostgreSQL refuses what calls to the outside need (does the worker's role have its "
               "rights? See `hapax check`); trying again");
}

void OutsideCalls::renew() {
  const auto asked = outside::Lease::Clock::now();
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
               "this worker's lease is over by PostgreSQL's clock, or PostgreSQL has lost it (a "
               "failover or a restore). Its calls are asked to stop. Others may take them over");
    holder_.lease.lost();
    in_flight_.watch();
    holder_.id = 0;
  }
}

// Keys may be taken a little before a thread is free, but not if that could make their calls
// doubtful. If lanes book more slowly than the other side answers, calls wait for them.
std::size_t OutsideCalls::room(std::size_t route) {
  const std::size_t threads = in_flight_.threads(route);
  if (threads == 0) return 0;
  if (*answers_[route] > 2 * threads) {
    waits_for_lanes_ = true;
    return 0;
  }
  const bool is_repeatable = routes_[route].outside->repeat != config::Repeat::never;
  const std::size_t capacity = threads + (is_repeatable ? threads / 8 : 0);
  return capacity - std::min(capacity, of_route_[route]);
}

void OutsideCalls::take() {
  waits_for_lanes_ = false;
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
    take_keys(flights, calls.cautious);
    for (auto flight = flights.begin(); flight != flights.end();) {
      const auto current = flight++;
      if (current->taken.token == 0)
        pass_to_lane(flights, current);
      else
        begin(flights, current);
    }
  } catch (const store::DatabaseError& error) {
    for (auto flight = flights.begin(); flight != flights.end();) {
      if (flight->taken.token != 0) leave(*flight, true);
      flight = settle(flights, flight, flow::away(error.what()));
    }
    throw;
  }
  // Messages that needed no call have left room, and nothing else wakes this thread.
  setup_.dispatcher.wake_calls();
}

// If another holder calls a message's key, the message waits. If a key is not taken for another
// reason, its flight has no token.
void OutsideCalls::take_keys(Flights& flights, bool alone) {
  if (flights.empty()) return;
  std::vector<store::CallRequest> requests;
  for (const Flight& flight : flights) {
    requests.push_back({flight.claim(), alone});
    flight.work.partition->may_have_begun(flight.task.message.offset());
  }
  std::vector<store::Take> takes;
  try {
    takes = store::take_calls(*session_, holder_.id, requests);
  } catch (const store::DatabaseError&) {
    for (Flight& flight : flights) leave(flight, true);
    throw;
  }
  flow::crash_point("call_taken");
  auto take = takes.begin();
  for (auto flight = flights.begin(); flight != flights.end(); ++take) {
    if (take->is_held) {
      // An earlier take left it, whose COMMIT came after the key had been given back. If the server
      // lost commits, it is not known what it has forgotten of that key.
      if (take->is_own) leave(*flight, false);
      flight = settle(flights, flight,
                      flow::to_call("key_started", flight->task.attempts, flow::kKeyHeldWait));
    } else {
      if (take->taken) flight->taken = *take->taken;
      ++flight;
    }
  }
}

// PostgreSQL may keep the key, though this process does not go on with it.
void OutsideCalls::leave(Flight& flight, bool uncalled) {
  holder_.keys.leave(std::exchange(flight.key, {}), {.identity = flight.identity,
                                                     .scope = flight.task.route.key.scope,
                                                     .holder = holder_.id,
                                                     .uncalled = uncalled});
}

// Derives keys. If a message needs no call, or must be judged first, it goes to a lane.
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
    if (!holder_.keys.add(key)) {
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
  // The last message may have dropped the session.
  if (std::string why; !flights.empty() && !session_.is_reachable(why))
    throw store::DatabaseError({store::Fault::Kind::connection, "", why});
}

// Whether it is remembered, or must be and is not: a lane finds that out from its key, too. Or
// whether it violates a schema, unless its call began before the schema was there.
bool OutsideCalls::is_for_lane(Flight& flight) {
  const flow::Task& task = flight.task;
  const bool is_below = task.message.offset() < task.guard_below;
  const bool violates = flow::violation(task).has_value();
  if (!task.may_be_known() && !violates) return false;
  // A key that is known tells more than coordinates.
  const auto holder = store::read_holder(*session_, flight.claim());
  if (violates) return !holder || !store::is_begun_call(*holder);
  if (holder && holder->status != "failed") return false;
  store::Transaction transaction(*session_);
  const store::Known known = store::known_coordinates(transaction, flight.source,
                                                      task.route.key.scope, task.route.retention);
  return known.dead_letter || (is_below && !known.attempted);
}

// Does what the policy plans for a key that is ours now.
void OutsideCalls::begin(Flights& flights, Flights::iterator flight) {
  const flow::Task& task = flight->task;
  store::TakenCall& taken = flight->taken;
  outside::History history{taken.calls, taken.crashes, taken.age, taken.answer.has_value()};
  if (task.message.offset() < task.doubt_below)
    history = outside::in_doubt(history, age_of(task.message));
  taken.calls = history.calls;
  flow::Attempt attempt(task, session_, random_, flight->identity);
  auto next = flow::next_step(attempt, taken, history);
  if (auto* const ended = std::get_if<Outcome>(&next)) {
    // An open call that an earlier process left is no sign of a broken deploy.
    settle(flights, flight, std::move(*ended), false);
  } else if (const Step step = std::get<Step>(next); step == Step::book) {
    flight->item().answered = waiting(flight->route(), taken.token, *taken.answer);
    pass_to_lane(flights, flight);
  } else {
    flight->message = &task.message;
    flight->scope = task.route.key.scope;
    flight->token = taken.token;
    flight->holder = holder_.id;
    flight->step = step;
    flight->max_duration = flight->rules().max_duration;
    metrics_.at(flight->route()).began();
    ++unaccounted_;
    in_flight_.begin(flights, flight);
  }
}

Flights::iterator OutsideCalls::settle(Flights& flights, Flights::iterator flight, Outcome outcome,
                                       bool tells_of_handler) {
  if (tells_of_handler) flight->task.breaker->learn(outcome);
  outcome.announced = flight->item().announced;  // a lane made the announcement, and withdraws it
  settler_.settle(std::span(&flight->work, 1), std::span(&outcome, 1), Clock::now(),
                  flight->task.trace);
  return finish(flights, flight);
}

Flights::iterator OutsideCalls::pass_to_lane(Flights& flights, Flights::iterator flight) {
  flight->item().for_lane = true;
  flight->item().not_before = {};
  return finish(flights, flight);
}

Flights::iterator OutsideCalls::finish(Flights& flights, Flights::iterator flight) {
  holder_.keys.remove(flight->key);
  --of_route_[flight->route()];
  if (&flights == &done_) --unaccounted_;
  std::vector<Work> works;
  works.push_back(std::move(flight->work));
  const auto next = flights.erase(flight);
  setup_.dispatcher.finish(std::move(works));
  return next;
}

}  // namespace hapax::worker
