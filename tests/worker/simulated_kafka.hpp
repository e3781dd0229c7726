// A Kafka in memory for the simulation of the poll thread: logs and the group's offsets. Its
// consumer hands out what it was told to fetch.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kafka/consumer.hpp"
#include "steps.hpp"
#include "worker/dispatcher.hpp"

namespace hapax::worker::poll_simulation {

using Time = Clock::time_point;

struct Logged {
  std::int64_t offset = 0;
  std::string key;
  std::int64_t timestamp = 0;
  std::size_t size = 0;
  bool unreadable = false;
};

struct Log {
  std::vector<Logged> records = {};
  std::int64_t end = 0;
  std::optional<std::int64_t> committed = {};  // by the group
  int made = 1;                                // so often the topic was
  Time made_at = {};
  int rewritten = 0;  // so often it lost its end
};

class SimulatedKafka final : public kafka::ConsumerInterface {
 public:
  std::map<TopicPartition, Log> logs;
  std::set<TopicPartition> assigned;
  std::map<TopicPartition, std::int64_t> fetched;  // the offset at which each goes on
  std::set<TopicPartition> paused;                 // of these
  std::set<TopicPartition> stuck;                  // until restart()
  std::set<TopicPartition> silent;                 // until they are started again
  std::optional<std::vector<kafka::Commit>> in_flight;

  // What the simulation looks at.
  std::function<void(const std::vector<kafka::Commit>&)> sees_commit;
  std::function<void(const TopicPartition&)> sees_pause;
  std::function<void(const kafka::Position&)> sees_start;

  bool fetches(const TopicPartition& id) const {
    return fetched.contains(id) && !paused.contains(id);
  }

  // The next of a partition that comes out of poll().
  kafka::Event next(const TopicPartition& id) {
    if (!fetches(id) || silent.contains(id)) return {};
    const Log& log = logs.at(id);
    std::int64_t& position = fetched.at(id);
    const auto record = std::ranges::lower_bound(log.records, position, {}, &Logged::offset);
    if (record == log.records.end()) {
      if (!ended_.insert({id, log.end}).second) return {};
      return kafka::EndOfPartition{id, log.end};
    }
    position = record->offset + 1;
    if (record->unreadable)
      return kafka::PartitionError{kafka::PartitionError::Kind::unreadable, id, record->offset,
                                   "BAD", "broken"};
    return copy_of(id, *record);
  }

  static std::unique_ptr<kafka::Record> copy_of(const TopicPartition& id, const Logged& record) {
    const std::string payload(record.size, 'x');
    Message::Parts parts{.coordinates = {id.first, id.second, record.offset},
                         .timestamp_ms = record.timestamp,
                         .timestamp_type = TimestampType::create_time,
                         .payload = payload};
    if (!record.key.empty()) parts.key = record.key;
    return kafka::Record::copy(parts);
  }

  // The group takes the partition away.
  void forget(const TopicPartition& id) {
    assigned.erase(id);
    fetched.erase(id);
    paused.erase(id);
    stuck.erase(id);
    silent.erase(id);
  }

  void rejoin() override {}
  std::vector<TopicPartition> start(const std::vector<kafka::Position>& positions) override {
    std::vector<TopicPartition> refused;
    for (const kafka::Position& position : positions) {
      const TopicPartition& id = position.partition;
      sees_start(position);
      if (stuck.contains(id)) {
        refused.push_back(id);
        continue;
      }
      fetched[id] = position.offset;
      paused.erase(id);
      silent.erase(id);
      std::erase_if(ended_, [&](const auto& ended) { return ended.first == id; });
    }
    return refused;
  }
  std::vector<TopicPartition> restart(const std::vector<kafka::Position>& positions) override {
    fetched.clear();
    paused.clear();
    stuck.clear();
    return start(positions);
  }
  void pause(const std::vector<TopicPartition>& partitions) override {
    for (const TopicPartition& id : partitions) {
      if (!fetched.contains(id)) continue;
      if (partitions.size() == 1) sees_pause(id);
      paused.insert(id);
    }
  }
  void resume(const TopicPartition& partition) override { paused.erase(partition); }
  bool commit(const std::vector<kafka::Commit>& commits) override {
    if (in_flight || commits.empty()) return false;
    sees_commit(commits);
    in_flight = commits;
    return true;
  }
  bool commits() const override { return in_flight.has_value(); }
  std::map<TopicPartition, std::string> commit_and_wait(const std::vector<kafka::Commit>& commits,
                                                        std::chrono::milliseconds) override {
    sees_commit(commits);
    return {};
  }
  void set_credentials(const std::string&, const std::string&) override {}
  int partition_count(const std::string&, std::chrono::milliseconds) const override { return 1; }
  std::optional<std::int64_t> known_end(const TopicPartition& partition) const override {
    return logs.at(partition).end;
  }

 private:
  std::set<std::pair<TopicPartition, std::int64_t>> ended_;  // ends that were handed out
};

}  // namespace hapax::worker::poll_simulation
