#include "worker/calls_in_flight.hpp"

#include <utility>

#include "observe/log.hpp"
#include "worker/stoppable_wait.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{100};      // between two looks at calls that run
constexpr milliseconds kGrace{10'000};  // for a call that was asked to stop
constexpr milliseconds kMeanwhile{3'000};

bool runs(const outside::CallToMake& call) {
  return call.began.load() != Clock::time_point{} && !call.is_back;
}

}  // namespace

CallsInFlight::CallsInFlight(Dispatcher& dispatcher, const std::vector<flow::Route>& routes,
                             std::vector<Handlers> handlers, const outside::Holder& holder,
                             outside::StepKeeper& steps, traces::Tracer* tracer)
    : dispatcher_(dispatcher), routes_(routes), holder_(holder) {
  const auto came_back = [this] {
    {
      const sync::Lock lock(mutex_);
      came_back_.notify_all();
    }
    dispatcher_.wake_calls();
  };
  for (std::size_t route = 0; route < handlers.size(); ++route)
    callers_.push_back(
        handlers[route].empty()
            ? nullptr
            : std::make_unique<outside::Callers>(std::move(handlers[route]), holder, steps,
                                                 came_back, routes[route].handler.name, tracer));
  watcher_ = std::jthread([this](const std::stop_token& stop) {
    for (; !stop.stop_requested(); wait_unless_stopped(stop, kLook)) watch();
  });
}

CallsInFlight::~CallsInFlight() = default;

std::size_t CallsInFlight::threads(std::size_t route) const {
  return callers_[route] ? callers_[route]->size() : 0;
}

void CallsInFlight::begin(Flights& flights, Flights::iterator flight) {
  const sync::Lock lock(mutex_);
  flight->cancelled = stopped_;
  in_flight_.splice(in_flight_.end(), flights, flight);
  callers_[flight->route()]->add(*flight);
}

void CallsInFlight::collect(Flights& done) {
  const sync::Lock lock(mutex_);
  for (auto flight = in_flight_.begin(); flight != in_flight_.end();) {
    const auto current = flight++;
    if (current->is_back) done.splice(done.end(), in_flight_, current);
  }
}

void CallsInFlight::make_for_replay(const flow::Route& route, const store::Source& source,
                                    outside::CallToMake& call,
                                    const std::function<void()>& meanwhile) {
  {
    const sync::Lock lock(mutex_);
    call.cancelled = stopped_;
    replayed_ = Replayed{source, route.handler.name, &call};
    callers_[static_cast<std::size_t>(&route - routes_.data())]->add(call);
  }
  for (;; meanwhile()) {
    sync::Lock lock(mutex_);
    if (!came_back_.wait_for(lock.waitable(), kMeanwhile, [&call] { return call.is_back.load(); }))
      continue;
    replayed_.reset();
    return;
  }
}

bool CallsInFlight::any() const {
  const sync::Lock lock(mutex_);
  return !in_flight_.empty() || replayed_;
}

void CallsInFlight::stop() {
  const sync::Lock lock(mutex_);
  stopped_ = true;
  for (Flight& flight : in_flight_) flight.cancelled = true;
  if (replayed_) replayed_->call->cancelled = true;
}

void CallsInFlight::ask_to_stop() {
  Stops stops;
  {
    const sync::Lock lock(mutex_);
    for (Flight& flight : in_flight_) ask(flight, stops);
    if (replayed_) ask(*replayed_->call, stops);
  }
  stop_requests_.request(stops);
}

std::vector<CallsInFlight::Running> CallsInFlight::running() const {
  const sync::Lock lock(mutex_);
  std::vector<Running> running;
  for (const Flight& flight : in_flight_)
    if (runs(flight))
      running.push_back({flight.source, flight.task.route.handler.name, flight.began});
  if (replayed_ && runs(*replayed_->call))
    running.push_back({replayed_->source, replayed_->handler, replayed_->call->began});
  return running;
}

void CallsInFlight::watch() {
  const auto now = Clock::now();
  const bool may_call = holder_.id == 0 || holder_.lease.may_call();
  Stops stops;
  {
    const sync::Lock lock(mutex_);
    for (Flight& flight : in_flight_) watch(flight, flight.source.topic, now, may_call, stops);
    if (replayed_) watch(*replayed_->call, replayed_->source.topic, now, may_call, stops);
  }
  stop_requests_.request(stops);
}

void CallsInFlight::ask(outside::CallToMake& call, Stops& stops) {
  if (!std::exchange(call.asked_to_stop, true)) stops.push_back(call.stop);
}

void CallsInFlight::watch(outside::CallToMake& call, const std::string& topic,
                          Clock::time_point now, bool may_call, Stops& stops) {
  if (!may_call) ask(call, stops);
  const Clock::time_point began = call.began;
  if (began == Clock::time_point{} || call.is_back || now < began + call.max_duration) return;
  ask(call, stops);
  if (now < began + call.max_duration + kGrace || hangs_.exchange(true)) return;
  observe::log::error(
      "call_hangs",
      {{"topic", topic},
       {"partition", call.message->partition()},
       {"offset", call.message->offset()},
       {"seconds", (now - began) / std::chrono::seconds(1)}},
      "a call did not return after outside.max_duration, though it was asked to stop; the process "
      "ends, and another one takes the key over");
}

}  // namespace hapax::worker
