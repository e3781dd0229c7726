// What the parts of the poll thread ask of a consumer. Tests put one in memory in its place.
//
// Owned by the poll thread, except what is marked "any thread".
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hapax::kafka {

using TopicPartition = std::pair<std::string, std::int32_t>;

struct Position {
  TopicPartition partition;
  std::int64_t offset = 0;
};

struct Commit {
  TopicPartition partition;
  std::int64_t offset = 0;
  std::int32_t leader_epoch = -1;
  std::string metadata;

  bool operator==(const Commit&) const = default;
};

enum class CommitResult { done, dropped, later, fatal };

class ConsumerInterface {
 public:
  // Leaves the group and comes back, so that it assigns all partitions again; a static member, too.
  // on_revoked comes inside a later poll(). Throws: std::runtime_error.
  virtual void rejoin() = 0;

  // Fetches these from these offsets, and drops what it had fetched of them. Other partitions go
  // on. Returns the partitions that librdkafka cannot move: after an offset out of range only
  // restart() helps. Blocks: about a second at most.
  virtual std::vector<TopicPartition> start(const std::vector<Position>& positions) = 0;

  // Fetches exactly these, from these offsets, of all that is assigned. What was fetched ahead of
  // any of them is dropped. Returns as start(). Throws: std::runtime_error.
  virtual std::vector<TopicPartition> restart(const std::vector<Position>& positions) = 0;

  // Fetches no more of them. resume() goes on behind the last message of poll(), start() anywhere.
  // Both do nothing if it is so already.
  virtual void pause(const std::vector<TopicPartition>& partitions) = 0;
  virtual void resume(const TopicPartition& partition) = 0;

  // Sends one commit of all; the result comes to on_committed, inside a later poll(). One is in
  // flight at a time: false if the one before has not been answered.
  virtual bool commit(const std::vector<Commit>& commits) = 0;
  // Whether one is in flight.
  virtual bool commits() const = 0;

  // Waits for the answer: those that were refused, and why. Any thread.
  // Throws: std::runtime_error if all of it failed. Blocks: at most `timeout`.
  virtual std::map<TopicPartition, std::string> commit_and_wait(
      const std::vector<Commit>& commits, std::chrono::milliseconds timeout) = 0;

  // For the connections that are made from now on; those that there are stay. Any thread.
  // Throws: std::runtime_error, without the password.
  virtual void set_credentials(const std::string& user, const std::string& password) = 0;

  // Number of partitions, or 0 if the topic does not exist. Any thread.
  // Throws: std::runtime_error. Blocks: at most `timeout`.
  virtual int partition_count(const std::string& topic,
                              std::chrono::milliseconds timeout) const = 0;

  // One more than the newest offset, as the last fetch reported it; nothing before that. Any
  // thread.
  virtual std::optional<std::int64_t> known_end(const TopicPartition& partition) const = 0;

 protected:
  ~ConsumerInterface() = default;
};

}  // namespace hapax::kafka
