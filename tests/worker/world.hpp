// The simulated world has real partitions, a real dispatcher and real settlers. The schedule steps
// its lanes and sets its clock. Kafka, PostgreSQL and the poll thread are replaced by stand-ins.
//
// After each step, it compares all visible state with the Reference.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "flow/verdicts.hpp"
#include "reference.hpp"
#include "schedule.hpp"
#include "worker/settler.hpp"

namespace hapax::worker::simulation {

class World {
 public:
  World(const Ground& ground, observe::Metrics& metrics);

  // Throws: Broken, from wherever a promise is.
  void play(const Step& step);
  // Everything that still can comes to its end: nothing is lost, left over or starved.
  void finish();

  // What happened, a line each.
  const std::vector<std::string>& story() const { return story_; }
  const Reached& reached() const { return reached_; }

 private:
  static constexpr int kContended = 25;  // runs of a contended message that come to nothing
  static constexpr Time kStart{std::chrono::hours(1)};

  struct Logged {
    std::int64_t offset;
    std::uint64_t order_key;
  };
  // What PostgreSQL has of a message.
  struct Fact {
    bool settled = false;
    bool given_up = false;
    int contended = 0;
    int attempts = 0;
    Time next_try{};
  };
  // One partition, over all its assignments. Its Kafka log, and what PostgreSQL has of it.
  struct Site {
    TopicPartition id;
    std::size_t route = 0;
    std::vector<Logged> log = {};
    std::int64_t end = 0;
    std::map<std::int64_t, Fact> facts = {};
    std::int64_t checkpoint = 0;
    std::shared_ptr<Partition> partition = {};  // null: revoked or halted
    std::size_t fetched = 0;
    std::map<std::int64_t, Fact> ahead = {};  // of the facts, as they were when it was assigned
  };
  struct Player {
    std::optional<Batch> batch;
    std::optional<Work> next;  // behind the one message of the batch
    bool postgres_away = false;
  };
  struct Wanted {
    const Partition* partition;
    bool whole_route;
    std::optional<std::int64_t> offset;
    bool operator==(const Wanted&) const = default;
  };

  // Messages given up on for one cause, and whether the breaker holds the others back.
  struct InARow {
    std::string cause;
    int count = 0;
    bool open = false;
  };

  // world_steps.hpp
  void arrive(Site& site, Digits digits);
  void deliver(Site& site);
  void take(Player& lane, std::size_t limit);
  void prefetch(Player& lane);
  void end(Player& lane, Digits digits);
  std::vector<flow::Outcome> draw_outcomes(const Batch& batch, Digits digits);
  flow::Outcome draw_outcome(Fact& fact, Digits& digits);
  void remember(const Player& lane, const Work& work, std::span<const flow::Outcome> outcomes);
  void settle(Player& lane, std::span<Work> works, std::span<const flow::Outcome> outcomes);
  void serve();
  void assign(Site& site);
  void drop(Site& site);
  void write_checkpoint(Site& site);

  // world_checks.hpp
  Reference::Ended expect_end(const Work& work, std::span<const flow::Outcome> outcomes);
  void expect_breaks(const Work& work, std::span<const flow::Outcome> settled);
  void check();
  void check_partition(const std::shared_ptr<Partition>& partition);
  void check_blocking(const Partition& partition);

  Site& site_of(const Partition& partition);
  std::string name(const Player& lane) const;
  void tell(const std::string& line) { story_.push_back(line); }

  const std::string text_ = "simulation";
  std::vector<flow::Route> routes_;
  observe::Health health_;
  PostgresState postgres_;
  Notices notices_;
  Dispatcher dispatcher_;
  LaneSetup setup_;
  std::vector<Site> sites_;
  std::vector<Player> lanes_;
  std::deque<Settler> settlers_;                        // one a lane
  std::vector<std::shared_ptr<Partition>> partitions_;  // of all assignments there ever were
  Reference reference_;
  const bool hot_;

  Time now_ = kStart;
  std::uint64_t unordered_ = 100;           // order keys of messages without one
  std::vector<std::int64_t> said_settled_;  // to LaneSetup::settled
  std::vector<Wanted> wanted_;              // halts that must have been asked for
  std::vector<InARow> given_up_;            // by route
  std::vector<std::string> story_;
  Reached reached_;
};

}  // namespace hapax::worker::simulation

#include "world_checks.hpp"
#include "world_steps.hpp"
