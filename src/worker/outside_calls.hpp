// The calls of outside routes: takes their keys, has them made, and keeps what came of them.
//
//   dispatcher ─take_calls─▶ key taken, committed ─▶ a caller's thread ─▶ answer committed ─▶ a
//   lane
//
// One thread and one session for all of it: takes, answers and the lease are joined over messages.
// What needs no call goes to a lane, which decides as for any other route.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "flow/attempt.hpp"
#include "outside/callers.hpp"
#include "outside/holder.hpp"
#include "sync/mutex.hpp"
#include "worker/lane_setup.hpp"
#include "worker/settler.hpp"

namespace hapax::worker {

class OutsideCalls {
 public:
  using Handlers = std::vector<std::unique_ptr<OutsideHandler>>;

  // `handlers`: by route index, one for each call at once; none for a route that does not call.
  OutsideCalls(LaneSetup& setup, const std::vector<flow::Route>& routes,
               std::vector<Handlers> handlers, std::uint64_t seed);
  // Blocks: until the calls that run have come back.
  ~OutsideCalls();

  // Takes no more, and begins none that it has taken. Any thread.
  void stop();

  // Asks the calls that run to stop. Any thread.
  void ask_to_stop();

  // Whether a call did not come back though it was asked to: the process must end. Any thread.
  bool hangs() const { return hangs_; }

  // The calls that run now. Any thread.
  struct Running {
    store::Source source;
    std::string handler;
    Clock::time_point since;
  };
  std::vector<Running> running() const;

  // Under which replays call. Any thread.
  const outside::Holder& holder() const { return holder_; }

  // Makes a replay's call, beside those of Kafka's messages. Blocks: until it has come back.
  void make_for_replay(const flow::Route& route, outside::CallToMake& call);

 private:
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
    key::Identity identity = {};
    store::TakenCall taken = {};
  };
  using Flights = std::list<Flight>;

  void run(const std::stop_token& stop);
  bool turn(bool takes);
  void renew();
  void watch();
  void keep_one_by_one();
  void watch(outside::CallToMake& call, const std::string& topic, Clock::time_point now,
             bool may_call);
  bool is_calling() const;
  Clock::time_point next_look() const;
  void count_unknown();
  void count(const Flight& ended);
  void keep_ended();
  void keep_answers();
  flow::Outcome account(Flight& ended);
  flow::Outcome end(Flight& ended, store::CallEnd how, const char* reason, std::string why,
                    int attempts);
  void take();
  void prepare(Flights& flights);
  bool is_for_lane(Flight& flight);
  void begin(Flights& flights, Flights::iterator flight);
  std::size_t room(std::size_t route) const;
  Flights::iterator settle(Flights& flights, Flights::iterator flight, flow::Outcome outcome);
  Flights::iterator pass_to_lane(Flights& flights, Flights::iterator flight);
  Flights::iterator finish(Flights& flights, Flights::iterator flight);

  LaneSetup& setup_;
  const std::vector<flow::Route>& routes_;
  outside::Holder holder_;
  std::minstd_rand random_;
  Settler settler_;
  flow::LaneSession session_;
  std::map<std::size_t, observe::CallMetrics> metrics_;  // by route index
  Clock::time_point count_again_{};
  Clock::time_point try_again_{};      // PostgreSQL is away until then
  Flights done_;                       // that came back, and are not accounted for yet
  std::set<std::string> keys_;         // of all flights, as they are handed on
  std::vector<std::size_t> of_route_;  // flights, by route index

  mutable sync::Mutex mutex_;
  std::condition_variable came_back_;
  // Its topic, and null if none is made.
  std::pair<std::string, outside::CallToMake*> replayed_ HAPAX_GUARDED_BY(mutex_){};
  Flights in_flight_ HAPAX_GUARDED_BY(mutex_);  // that callers have
  std::atomic<bool> hangs_ = false;
  std::vector<std::unique_ptr<outside::Callers>> callers_;  // by route index; may be null
  std::jthread watcher_;  // it never waits for PostgreSQL; these two use all of the above
  std::jthread thread_;
};

}  // namespace hapax::worker
