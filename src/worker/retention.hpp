// Removes expired keys, in the worker that holds the lease. Each worker records until when its
// partitions are settled, because that decides which keys are kept (store/worker/retention.hpp). It
// has a thread and a session of its own, so neither checkpoints nor claims wait for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "observe/metrics.hpp"
#include "store/session.hpp"
#include "store/worker/retention.hpp"
#include "worker/own_time.hpp"

namespace hapax::worker {

struct RetentionSetup {
  std::function<store::Session()> connect;
  std::string group;
  std::string worker_name;
  std::function<store::HeldLogs()> held;
  // Asks for the ends of logs now, with messages that a producer's open transaction hides. Leaves
  // out those that Kafka does not tell. Throws: std::exception.
  std::function<std::map<store::TopicPartition, std::int64_t>(
      const std::vector<store::TopicPartition>&)>
      ends;
  observe::Metrics& metrics;
};

class Retention {
 public:
  explicit Retention(RetentionSetup setup);

 private:
  void run(const std::stop_token& stop);
  void serve(const std::stop_token& stop);
  store::ClockReading read_clock(store::Session& session);
  void note_passed(store::Session& session, const std::string& now);
  void remove_expired(const std::stop_token& stop, store::Session& session, const std::string& now);
  bool remove(const std::stop_token& stop, store::Session& session, std::string& from,
              const std::vector<store::HeldScope>& scopes,
              const std::optional<std::string>& others = std::nullopt);
  void say_held(const store::HeldScope& scope);

  static constexpr const char* kOldest = "-infinity";  // as PostgreSQL tells and takes it

  const RetentionSetup setup_;
  const OwnTime<> own_time_;

  // By the thread only.
  std::map<store::TopicPartition, store::LogEnd> asked_;  // not reached yet
  std::map<std::string, std::string> removed_until_;      // by scope
  std::string looked_until_ = kOldest;                    // by a look at all that has not ended
  std::map<std::string, std::string> said_held_;          // by scope
  std::chrono::steady_clock::time_point look_at_all_{};
  bool said_ahead_ = false;
  std::chrono::steady_clock::time_point worked_at_{
      std::chrono::steady_clock::now()};  // the last round without error

  std::jthread thread_;
};

}  // namespace hapax::worker
