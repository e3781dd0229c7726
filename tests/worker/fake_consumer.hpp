// A consumer in memory for the parts of the poll thread: it does what a test tells it, and keeps
// what it was asked.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kafka/consumer_interface.hpp"

namespace hapax::worker {

struct FakeConsumer final : kafka::ConsumerInterface {
  using TopicPartition = kafka::TopicPartition;

  void rejoin() override {
    ++rejoined;
    if (refuses_rejoin) throw std::runtime_error("cannot subscribe");
  }
  std::vector<TopicPartition> start(const std::vector<kafka::Position>& positions) override {
    ++starts;
    std::vector<TopicPartition> refused;
    for (const auto& [partition, offset] : positions)
      if (cannot_move.contains(partition)) {
        refused.push_back(partition);
      } else {
        fetched[partition] = offset;
      }
    return refused;
  }
  std::vector<TopicPartition> restart(const std::vector<kafka::Position>& positions) override {
    ++restarts;
    fetched.clear();
    cannot_move.clear();
    return start(positions);
  }
  void pause(const std::vector<TopicPartition>& partitions) override {
    for (const TopicPartition& partition : partitions)
      if (const auto found = fetched.find(partition); found != fetched.end())
        paused.insert(fetched.extract(found));
  }
  void resume(const TopicPartition& partition) override {
    if (const auto found = paused.find(partition); found != paused.end())
      fetched.insert(paused.extract(found));
  }
  bool commit(const std::vector<kafka::Commit>& commits) override {
    if (in_flight || commits.empty()) return false;
    in_flight = commits;
    return true;
  }
  bool commits() const override { return in_flight.has_value(); }
  std::map<TopicPartition, std::string> commit_and_wait(const std::vector<kafka::Commit>& commits,
                                                        std::chrono::milliseconds) override {
    waited_for = commits;
    return refused_commits;
  }
  void set_credentials(const std::string& user, const std::string& password) override {
    if (refuses_credentials) throw std::runtime_error("refused");
    credentials = {user, password};
  }
  int partition_count(const std::string& topic, std::chrono::milliseconds) const override {
    ++asked;
    if (is_down) throw std::runtime_error("no broker answers");
    const auto found = topics.find(topic);
    return found == topics.end() ? 0 : found->second;
  }
  std::optional<std::int64_t> known_end(const TopicPartition& partition) const override {
    const auto found = ends.find(partition);
    if (found == ends.end()) return std::nullopt;
    return found->second;
  }

  // What it does.
  bool refuses_rejoin = false;
  bool refuses_credentials = false;
  bool is_down = false;
  std::set<TopicPartition> cannot_move;  // until restart()
  std::map<TopicPartition, std::string> refused_commits;
  std::map<std::string, int> topics;
  std::map<TopicPartition, std::int64_t> ends;

  // What it was asked.
  int rejoined = 0, starts = 0, restarts = 0;
  mutable int asked = 0;
  std::map<TopicPartition, std::int64_t> fetched;  // partition → the offset it was started from
  std::map<TopicPartition, std::int64_t> paused;   // of these, those that do not go on
  std::optional<std::vector<kafka::Commit>> in_flight;
  std::vector<kafka::Commit> waited_for;
  std::pair<std::string, std::string> credentials;
};

}  // namespace hapax::worker
