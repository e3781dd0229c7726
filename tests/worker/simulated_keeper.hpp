// A keeper in memory for the simulation of the poll thread: PostgreSQL's checkpoints and halts.
// A step of the schedule agrees a start.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulated_kafka.hpp"
#include "worker/keeper_interface.hpp"
#include "worker/notices.hpp"

namespace hapax::worker::poll_simulation {

using simulation::hold;

struct Row {
  std::int64_t next = 0;
  Time written{};
  std::int64_t epoch = 0;
  int started_runs = 0;  // since it last moved
  int made = 1;          // which log it is of
  std::int32_t generation = 1;
  std::set<std::int64_t> settled = {};         // effects that stand
  std::optional<ReadRecord> last_record = {};  // below `next`
};

class SimulatedKeeper final : public KeeperInterface {
 public:
  SimulatedKeeper(SimulatedKafka& kafka, Notices& notices, const Time& now, bool has_ids)
      : kafka_(kafka), notices_(notices), now_(now), has_ids_(has_ids) {}

  std::map<TopicPartition, Row> rows;
  std::vector<store::Halt> halts;                      // open ones
  std::vector<std::shared_ptr<Partition>> partitions;  // all there ever were
  std::map<TopicPartition, std::shared_ptr<Partition>> held;
  Time looked{};

  void acquire(const std::vector<std::shared_ptr<Partition>>& wanted,
               std::chrono::milliseconds after) override {
    for (const auto& partition : wanted) {
      partitions.push_back(partition);
      wanted_.push_back({partition, now_ + after});
    }
  }
  void halted(const store::Halt& halt, bool recorded) override {
    if (!recorded) halts.push_back(halt);
    halted_.insert({halt.topic, halt.partition});
    std::erase_if(held, [](const auto& one) { return one.second->over(); });
  }
  bool logs_looked_at(Time since) override {
    return looked > std::max(since, now_ - std::chrono::seconds(1));
  }
  std::vector<std::shared_ptr<Partition>> with_another_log(
      const std::vector<std::shared_ptr<Partition>>& asked,
      std::chrono::milliseconds) const override {
    std::vector<std::shared_ptr<Partition>> found;
    for (const auto& partition : asked)
      if (rows.at(partition->id()).made != kafka_.logs.at(partition->id()).made)
        found.push_back(partition);
    return found;
  }
  void joined() override {}
  bool release(const std::vector<std::shared_ptr<Partition>>& released, bool idle,
               std::chrono::milliseconds) override {
    for (const auto& partition : released) {
      const auto found = held.find(partition->id());
      if (found == held.end() || found->second != partition) continue;
      Row& row = rows[partition->id()];
      if (row.epoch == partition->beginning().epoch) {
        write(*partition);
        if (idle) row.started_runs = 0;
      }
      held.erase(found);
    }
    for (const auto& partition : released) halted_.erase(partition->id());
    return true;
  }
  std::string store_id() const override { return "store"; }
  std::string cluster_id() const override { return "cluster"; }

  const store::Halt* halt_of(const TopicPartition& id) const {
    const auto open =
        std::ranges::find_if(halts, [&](const store::Halt& halt) { return halt.stops(id); });
    return open == halts.end() ? nullptr : &*open;
  }

  // As Starts does, of one partition. False if it has nothing to start.
  bool agree(const TopicPartition& id) {
    std::erase_if(wanted_, [](const Wanted& one) { return one.partition->over(); });
    const auto due = std::ranges::find_if(wanted_, [&](const Wanted& one) {
      return one.partition->id() == id && one.not_before <= now_;
    });
    if (due == wanted_.end()) return false;
    const std::shared_ptr<Partition> partition = due->partition;
    wanted_.erase(due);
    Row& row = rows[id];
    const Log& log = kafka_.logs.at(id);
    if (const store::Halt* const halt = halt_of(id)) {
      notices_.post(HaltWanted{.partition = partition, .halt = *halt, .recorded = true});
    } else if (row.made != log.made || partition->handover.read_below > log.end) {
      notices_.post(HaltWanted{
          partition, {.topic = id.first, .partition = id.second, .reason = "log"}, false});
    } else {
      begin(partition, row, log);
    }
    return true;
  }

  // Writes what has moved, finds what this worker has lost, and which halts were ended.
  void checkpoint() {
    for (auto one = held.begin(); one != held.end();) {
      const std::shared_ptr<Partition> partition = one->second;
      if (rows[one->first].epoch == partition->beginning().epoch) {
        write(*partition);
        ++one;
      } else {
        one = held.erase(one);
        notices_.post(Fenced{partition, (partition->beginning().epoch & 1) != 0});
      }
    }
    for (auto stopped = halted_.begin(); stopped != halted_.end();) {
      if (halt_of(*stopped) != nullptr) {
        ++stopped;
        continue;
      }
      notices_.post(HaltEnded{*stopped});
      stopped = halted_.erase(stopped);
    }
  }

  void look() {
    std::vector<std::shared_ptr<Partition>> all;
    for (const auto& [id, partition] : held) all.push_back(partition);
    for (const auto& partition : with_another_log(all, {})) notices_.post(LogDoubted{partition});
    looked = now_;
  }

  // An operator ends the halts of this partition, and takes the log for what it is.
  bool resume(const TopicPartition& id) {
    if (std::erase_if(halts, [&](const store::Halt& halt) { return halt.stops(id); }) == 0)
      return false;
    Row& row = rows[id];
    Log& log = kafka_.logs.at(id);
    ++row.generation;
    row.next = std::min(row.next, log.end);
    if (std::exchange(row.made, log.made) != log.made) {
      row.next = 0;
      row.settled.clear();
    }
    ++row.epoch;
    for (auto& record : log.records) record.unreadable = false;
    return true;
  }

 private:
  struct Wanted {
    std::shared_ptr<Partition> partition;
    Time not_before;
  };

  void begin(const std::shared_ptr<Partition>& partition, Row& row, const Log& log) {
    ++row.epoch;
    ++row.started_runs;
    Beginning beginning;
    beginning.epoch = row.epoch;
    beginning.started_runs = row.started_runs;
    beginning.topic_id = has_ids_ ? "id" + std::to_string(log.made) : "";
    beginning.has_kafka_offset = true;
    beginning.generation = row.generation;
    beginning.offset = row.next;
    beginning.log_end = log.end;
    auto& before = partition->handover.read_before;
    if (row.last_record) before.push_back(*row.last_record);
    before = comparable(std::move(before), row.generation, 0, row.next);
    partition->begin(std::move(beginning));
    held[partition->id()] = partition;
    notices_.post(Started{partition});
  }

  void write(Partition& partition) {
    Row& row = rows[partition.id()];
    const auto [watermark, last_record] = partition.reached();
    if (watermark <= partition.checkpointed()) return;
    if (row.made == kafka_.logs.at(partition.id()).made)
      for (const Logged& record : kafka_.logs.at(partition.id()).records)
        hold(record.offset < row.next || record.offset >= watermark ||
                 row.settled.contains(record.offset),
             "a checkpoint passes offset " + std::to_string(record.offset) + " of " +
                 partition.id().first + "/" + std::to_string(partition.id().second) +
                 ", which never ran");
    row.next = watermark;
    if (last_record) row.last_record = last_record;
    row.written = now_;
    row.started_runs = 0;
    partition.checkpointed(watermark);
  }

  SimulatedKafka& kafka_;
  Notices& notices_;
  const Time& now_;
  const bool has_ids_;
  std::vector<Wanted> wanted_;
  std::set<TopicPartition> halted_;  // of this worker's
};

}  // namespace hapax::worker::poll_simulation
