// The simulated world of the poll thread: the real PollThread, dispatcher and partitions, on a
// Kafka and a keeper in memory. The schedule moves the lanes and the clock.
//
// After each step what can be seen is held against what the poll thread promises.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "poll_schedule.hpp"
#include "simulated_kafka.hpp"
#include "simulated_keeper.hpp"
#include "worker/poll_thread.hpp"

namespace hapax::worker::poll_simulation {

class PollWorld {
 public:
  PollWorld(const Ground& ground, observe::Metrics& metrics);

  // Throws: Broken, from wherever a promise is.
  void play(const Step& step);
  // Everything that still can comes to its end: nothing is lost, left over or starved.
  void finish();

  // What happened, a line each.
  const std::vector<std::string>& story() const { return story_; }
  const Reached& reached() const { return reached_; }

 private:
  // One assignment of one partition.
  struct Truth {
    int made = 1;                         // the log that it reads
    std::set<std::int64_t> settled = {};  // by lanes, of what it received
  };

  // poll_world.hpp
  static config::Worker settings_of(const Ground& ground);
  std::vector<flow::Route> make_routes() const;

  // poll_world_steps.hpp
  void produce(const TopicPartition& id, Digits digits);
  bool poll(const TopicPartition& id);  // false: nothing comes
  std::optional<ReadRecord> read_before(const std::shared_ptr<Partition>& partition);
  void turn();
  void take(std::optional<Batch>& lane);
  void end(std::optional<Batch>& lane, Digits digits);
  void end(Work& work, Digits& digits);
  void settle(Work& work, std::size_t count);
  void halt(Work& work, bool whole_route);
  bool agree(const TopicPartition& id);
  void answer(Digits digits);
  void assign(const TopicPartition& id);
  void revoke(const TopicPartition& id, Digits digits);
  void fence(const TopicPartition& id, Digits digits);
  void resume(const TopicPartition& id);
  void fail(const TopicPartition& id, Digits digits);
  void remake(const TopicPartition& id, Digits digits);
  void rewrite(const TopicPartition& id, Digits digits);

  // poll_world_checks.hpp
  void check();
  void check_in_hand(const Partition& partition, const Log& log);
  void check_commits(const std::vector<kafka::Commit>& commits);
  void check_pause(const TopicPartition& id);
  void check_start(const kafka::Position& position);
  void check_caution(const Batch& batch);
  bool needs_caution(const Partition& partition) const;
  void watch_caution();
  bool is_done(const TopicPartition& id);

  // The newest assignment; null if there is none, or it is over. Running: its start is agreed.
  std::shared_ptr<Partition> current(const TopicPartition& id) const;
  std::shared_ptr<Partition> running(const TopicPartition& id) const;
  std::size_t in_hand() const;
  static std::string name(const TopicPartition& id) {
    return id.first + "/" + std::to_string(id.second);
  }
  void tell(const std::string& line) { story_.push_back(line); }

  const Ground ground_;
  const std::vector<TopicPartition> ids_{{"payments", 0}, {"payments", 1}, {"payments", 2},
                                         {"payments", 3}, {"orders", 0},   {"orders", 1}};
  const std::string text_ = "simulation";
  const config::Worker settings_;
  const config::Kafka kafka_settings_;
  const std::vector<flow::Route> routes_;
  Time now_{std::chrono::hours(1)};
  observe::Health health_;
  PostgresState postgres_;
  Notices notices_;
  Dispatcher dispatcher_;
  LaneSetup lane_setup_;
  SimulatedKafka kafka_;
  SimulatedKeeper keeper_;
  KafkaHealth kafka_health_;
  PollThread poll_;

  std::vector<std::optional<Batch>> lanes_;
  std::map<const Partition*, Truth> truths_;
  std::set<const Partition*> seen_running_, cautious_;
  std::map<TopicPartition, std::optional<ReadRecord>> last_read_;
  std::map<const Partition*, std::optional<ReadRecord>> read_before_;  // in the assignment before
  std::optional<TopicPartition> revoking_;
  bool lost_ = false;        // what is being revoked
  std::size_t held_ = 0;     // of the partition whose message comes, with it
  std::size_t counted_ = 0;  // messages in hand at the last turn, and that came since
  std::vector<std::string> story_;
  Reached reached_;
};

inline config::Worker PollWorld::settings_of(const Ground& ground) {
  config::Worker settings;
  settings.name = "w";
  settings.lanes = ground.lanes;
  settings.ordering = config::Ordering::key;
  settings.queue.messages = ground.queue;
  settings.revoke_timeout = {};
  return settings;
}

inline std::vector<flow::Route> PollWorld::make_routes() const {
  std::vector<flow::Route> routes(2);
  routes[0].topic = "payments";
  routes[1].topic = "orders";
  for (flow::Route& route : routes) route.batch = ground_.batch;
  return routes;
}

inline PollWorld::PollWorld(const Ground& ground, observe::Metrics& metrics)
    : ground_(ground),
      settings_(settings_of(ground)),
      routes_(make_routes()),
      postgres_(health_, metrics, {}),
      lane_setup_{text_, text_, {}, dispatcher_, notices_, postgres_, metrics, {}, {}},
      keeper_(kafka_, notices_, now_, ground.has_ids),
      kafka_health_(kafka_settings_, "payments", kafka_, health_),
      poll_({.settings = settings_,
             .earliest_when_out_of_range = false,
             .routes = routes_,
             .lanes = [&]() -> LaneSetup& {
               for (const flow::Route& route : routes_) {
                 lane_setup_.route_metrics.push_back(metrics.route(route.topic, text_));
                 lane_setup_.breakers.emplace_back(0);
               }
               return lane_setup_;
             }(),
             .consumer = kafka_,
             .keeper = keeper_,
             .kafka_health = kafka_health_,
             .health = health_,
             .tell_running = [] {},
             .order_hash = OrderHash(1, 2),
             .now = [this] { return now_; },
             .sleep =
                 [this](std::chrono::microseconds time) {
                   now_ += time;
                   for (auto& lane : lanes_) end(lane, Digits(0));
                 }}),
      lanes_(ground.lanes) {
  kafka_.sees_commit = [this](const auto& commits) { check_commits(commits); };
  kafka_.sees_pause = [this](const TopicPartition& id) { check_pause(id); };
  kafka_.sees_start = [this](const kafka::Position& position) { check_start(position); };
  for (const TopicPartition& id : ids_) {
    kafka_.logs[id];
    keeper_.rows[id];
    assign(id);
  }
}

inline std::shared_ptr<Partition> PollWorld::current(const TopicPartition& id) const {
  std::shared_ptr<Partition> newest;
  for (const auto& partition : keeper_.partitions)
    if (partition->id() == id) newest = partition;
  return newest && !newest->over() ? newest : nullptr;
}

inline std::shared_ptr<Partition> PollWorld::running(const TopicPartition& id) const {
  const auto partition = current(id);
  return partition && partition->polling.started ? partition : nullptr;
}

inline std::size_t PollWorld::in_hand() const {
  std::size_t messages = 0;
  for (const TopicPartition& id : ids_)
    if (const auto partition = running(id)) messages += partition->progress().messages;
  return messages;
}

}  // namespace hapax::worker::poll_simulation

#include "poll_world_checks.hpp"
#include "poll_world_steps.hpp"
