// The calls that callers' threads make now, for messages of Kafka and for one replay. It watches
// their time and their lease, and never waits for PostgreSQL.
//
// Thread safety: all of it, from any thread; one thread begins and collects.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "flow/task.hpp"
#include "outside/callers.hpp"
#include "outside/holder.hpp"
#include "outside/stop_requests.hpp"
#include "store/message/dead_letter.hpp"
#include "sync/mutex.hpp"
#include "worker/dispatcher.hpp"

namespace hapax::worker {

// A message whose key this process is about to take, or has taken, until it is finished.
struct Flight : outside::CallToMake {
  Flight(Work taken_work, const flow::Task& its_task)
      : work(std::move(taken_work)), task(its_task), source(its_task.source()) {}
  const config::Outside& rules() const { return *task.route.outside; }
  std::size_t route() const { return work.partition->route_index(); }
  Item& item() { return work.items.front(); }
  store::ClaimRequest claim() const {
    return {.identity = identity,
            .scope = task.route.key.scope,
            .source = source,
            .retention = task.route.retention,
            .epoch = task.epoch};
  }

  Work work;
  flow::Task task;
  store::Source source;
  store::TakenCall taken = {};
  bool is_begun = false;                         // its call
  std::optional<store::FailedRuns> failed = {};  // its failed attempt is recorded
  // PostgreSQL refused it, so it is tried again at this time.
  Clock::time_point account_at = {};
};
using Flights = std::list<Flight>;

class CallsInFlight {
 public:
  using Handlers = std::vector<std::unique_ptr<OutsideHandler>>;

  // `handlers`: by route index, one for each call at once; none for a route that does not call.
  // `tracer`: null if traces are off. The others outlive this.
  CallsInFlight(Dispatcher& dispatcher, const std::vector<flow::Route>& routes,
                std::vector<Handlers> handlers, const outside::Holder& holder,
                outside::StepKeeper& steps, traces::Tracer* tracer);
  // Blocks: until the calls that run have come back.
  ~CallsInFlight();
  CallsInFlight(const CallsInFlight&) = delete;
  CallsInFlight& operator=(const CallsInFlight&) = delete;

  // How many calls of the route may run at once; 0: it does not call.
  std::size_t threads(std::size_t route) const;

  // Starts the call, beside the others. Moves it out of `flights`.
  void begin(Flights& flights, Flights::iterator flight);

  // Moves the calls that have come back to the end of `done`.
  void collect(Flights& done);

  // Makes a replay's call; does not begin it after stop().
  // Blocks: until it has come back, and calls `meanwhile` every few seconds.
  void make_for_replay(const flow::Route& route, const store::Source& source,
                       outside::CallToMake& call, const std::function<void()>& meanwhile);

  // Whether calls of messages are not collected, or calls of replays have not come back.
  bool any() const;

  // From now on, begins no call.
  void stop();
  // Asks the running calls to stop. Waits for no callback of a handler.
  void ask_to_stop();
  // If a call's time or its lease is over, asks it to stop, in the same way.
  void watch();

  // Whether a call did not come back though it was asked to stop. Then the process must end.
  bool hangs() const { return hangs_; }

  struct Running {
    store::Source source;
    std::string handler;
    Clock::time_point since;
  };
  std::vector<Running> running() const;

 private:
  struct Replayed {
    store::Source source;
    std::string handler;
    outside::CallToMake* call = nullptr;
  };
  using Stops = std::vector<std::stop_source>;
  static void ask(outside::CallToMake& call, Stops& stops);
  void watch(outside::CallToMake& call, const std::string& topic, Clock::time_point now,
             bool may_call, Stops& stops);

  Dispatcher& dispatcher_;
  const std::vector<flow::Route>& routes_;
  const outside::Holder& holder_;
  mutable sync::Mutex mutex_;
  std::condition_variable came_back_;
  std::optional<Replayed> replayed_ HAPAX_GUARDED_BY(mutex_);
  Flights in_flight_ HAPAX_GUARDED_BY(mutex_);
  bool stopped_ HAPAX_GUARDED_BY(mutex_) = false;
  std::atomic<bool> hangs_ = false;
  outside::StopRequests stop_requests_;
  std::vector<std::unique_ptr<outside::Callers>> callers_;  // by route index; may be null
  std::jthread watcher_;                                    // last: it uses all of the above
};

}  // namespace hapax::worker
