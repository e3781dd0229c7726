// The board on which the worker writes how it is, and from which the probes are answered.
//
// The worker's threads write; the admin server's thread judges a copy (verdict.hpp), so a probe
// holds the worker up no longer than the copy takes. Writing never fails and never blocks on input
// or output.
//
// Thread safety: all of it may be called from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "observe/verdict.hpp"
#include "sync/mutex.hpp"

namespace hapax::observe {

class Health {
 public:
  using Now = std::function<TimePoint()>;

  // The poll loop counts as turned at construction: that is the time it has to start.
  explicit Health(HealthBounds bounds = {}, Now now = &std::chrono::steady_clock::now);

  void poll_turned();  // each turn of the poll loop; lock-free
  void started();      // configuration, plugins and schema are good; polling begins
  void draining();     // for good: there is no way back
  void fatal(std::string_view reason);  // the worker can't go on; the first reason stays

  // It joins no group, so neither that nor Kafka counts: a relay waits for Kafka for days, if need
  // be.
  void consumes_nothing();
  // A join completed, with any number of partitions; it proves that Kafka is reachable.
  void joined();
  // The group has gone on without this member, which must join again.
  void left();
  // The group does not let this member join; until it does. `why`: a sentence, no secrets.
  void refused_by_group(std::string_view why);
  // Kafka answers, and lacks a topic. `why`: a sentence, no secrets; empty: all are there.
  void waits_for_topics(std::string_view why);
  // false when librdkafka reports that all brokers are down; true again when any of them answers.
  // `why`: a sentence, no secrets; as to `error_class` of postgres().
  void kafka_reachable(bool reachable, std::string_view why = {});
  // A lane connected or failed to. `error_class`: what is wrong, no secrets.
  void postgres(bool up, bool writable, std::string_view error_class = {});

  // A partition is on the board, starting, from assigned to gone; a report between the two replaces
  // the last one, a report outside is ignored. Report on change, and while there is work at least
  // several times within `stall`: movement is seen by comparing watermarks.
  void partition_assigned(std::string_view topic, std::int32_t partition);
  void partition_report(std::string_view topic, std::int32_t partition, PartitionReport report);
  void partition_gone(std::string_view topic, std::int32_t partition);

  Verdict live() const;
  Verdict ready() const;

 private:
  HealthBoard copy() const;

  const HealthBounds bounds_;
  const Now now_;
  std::atomic<TimePoint> poll_turned_;
  mutable sync::Mutex mutex_;
  HealthBoard board_ HAPAX_GUARDED_BY(mutex_);  // its poll_turned is filled in by copy()
};

}  // namespace hapax::observe
