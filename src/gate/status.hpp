// The state of the gate: whether PostgreSQL answers, which routes are closed, whether it drains.
//
// Thread safety: all of it.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <string>

#include "observe/metrics.hpp"
#include "observe/verdict.hpp"
#include "sync/mutex.hpp"

namespace hapax::gate {

class Status {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Status(observe::Metrics& metrics) : metrics_(metrics) {}

  void postgres_up();
  // An outage is one line in the log, even if many lanes notice it.
  void postgres_down(const std::string& sqlstate, const std::string& text);
  bool is_postgres_down() const;
  // Whether PostgreSQL keeps its connections and does not answer. While it does so, no lane's
  // success ends the outage, because a lane may have only read. One thread.
  void postgres_silent(bool is);
  // Whether PostgreSQL was away a moment ago. Then to ask again would only hold a lane up.
  bool is_known_away() const;

  // Of the topics that routes publish to. A thread that finds nothing lacking also sees what was
  // written before kafka_found().
  void kafka_missing(const std::string& why);
  void kafka_found();
  bool lacks_kafka() const;

  // Part of an effect may be committed alone, so this process runs nothing of the route any more.
  void close_route(const std::string& path, const std::string& why);
  bool is_closed(const std::string& path) const;

  void started() { started_ = true; }
  void drain() { draining_ = true; }
  bool is_draining() const { return draining_; }

  // Live: always, because a restart would fix nothing. Ready: started, not draining, PostgreSQL
  // answers, and each route can be served.
  observe::Verdict live() const;
  observe::Verdict ready() const;

 private:
  observe::Metrics& metrics_;
  std::atomic<bool> started_{false};
  std::atomic<bool> draining_{false};
  mutable sync::Mutex mutex_;
  bool down_ HAPAX_GUARDED_BY(mutex_) = false;
  bool silent_ HAPAX_GUARDED_BY(mutex_) = false;
  Clock::time_point ask_again_ HAPAX_GUARDED_BY(mutex_){};
  std::map<std::string, std::string> closed_ HAPAX_GUARDED_BY(mutex_);  // by path: why
  std::string missing_ HAPAX_GUARDED_BY(mutex_);                        // of Kafka; empty: nothing
};

}  // namespace hapax::gate
