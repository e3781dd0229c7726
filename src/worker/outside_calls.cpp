#include "worker/outside_calls.hpp"

#include <algorithm>

#include "observe/log.hpp"
#include "store/advice.hpp"
#include "worker/stoppable_wait.hpp"

namespace hapax::worker {
namespace {

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

}  // namespace

OutsideCalls::OutsideCalls(LaneSetup& setup, const std::vector<flow::Route>& routes,
                           std::vector<Handlers> handlers, std::uint64_t seed)
    : setup_(setup),
      holder_(shortest_lease(routes)),
      session_(setup.connect),
      steps_([&setup] { setup.dispatcher.wake_calls(); }),
      in_flight_(setup.dispatcher, routes, std::move(handlers), holder_, steps_, setup.tracer),
      ends_(setup, holder_, routes.size()),
      accounts_(setup, routes, session_, in_flight_, ends_, seed),
      taker_({setup, routes, holder_, session_, in_flight_, ends_, accounts_}, seed + 1) {
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

void OutsideCalls::tell_running() const {
  for (const CallsInFlight::Running& running : in_flight_.running())
    log::warning("still_calls",
                 {{"handler", running.handler},
                  {"topic", running.source.topic},
                  {"partition", running.source.partition},
                  {"offset", running.source.offset},
                  {"seconds", (Clock::now() - running.since) / std::chrono::seconds(1)}},
                 "a call to the outside has not come back; another worker takes its key over once "
                 "this one's lease is over");
}

void OutsideCalls::tell_not_kept() const {
  accounts_.tell_not_kept();
  steps_.tell_not_kept(setup_.log_error_text);
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
  accounts_.finish_all();
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
  if (in_flight_.any() || accounts_.any() || taker_.waits_for_lanes()) return now + kLook;
  if (holder_.id == 0) return std::max(try_again_, now + kLook);
  const auto renew_in = holder_.lease.renew_at() - outside::Lease::Clock::now();
  const auto due = std::min(now + renew_in, accounts_.count_again());
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
    accounts_.keep_ended([this] { renew(); });
    accounts_.count_unknown();
    if (takes && holder_.may_call() != 0) taker_.take();
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
               "PostgreSQL refuses what calls to the outside need" +
                   store::advice_on(error.sqlstate()) + "; trying again");
}

// If PostgreSQL has lost the end of a call (a failover), it keeps the key for this holder, which
// has it in hand no more. Its message may be another worker's, which waits as long as the lease
// lasts.
void OutsideCalls::leave_lost_ends() {
  for (store::HeldKey& held : store::read_keys_of_holder(*session_, holder_.id)) {
    std::string key = outside::key_to_hand_on(held.scope, held.identity);
    if (holder_.keys.add(key)) holder_.keys.leave(std::move(key), std::move(held));
  }
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
      leave_lost_ends();
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

}  // namespace hapax::worker
