#include "observe/health.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace hapax::observe {
namespace {

using namespace std::chrono_literals;

// A worker for which everything is well, and a clock to move.
struct Worker {
  TimePoint now{1000s};
  Health health{HealthBounds{}, [this] { return now; }};

  Worker() {
    health.started();
    health.joined();
    health.postgres(true, true);
    health.partition_assigned("payments", 3);
    report({PartitionState::running, "", 100, 5, 2});
  }
  void report(const PartitionReport& report) { health.partition_report("payments", 3, report); }
  void pass(std::chrono::seconds time) {  // the poll loop goes on turning meanwhile
    now += time;
    health.poll_turned();
  }
};

bool has(const std::vector<std::string>& reasons, const std::string& reason) {
  return std::find(reasons.begin(), reasons.end(), reason) != reasons.end();
}

TEST(Ready, WhenEverythingIsKnownToBeWell) {
  Worker worker;
  const Verdict verdict = worker.health.ready();
  EXPECT_TRUE(verdict.ok);
  EXPECT_TRUE(verdict.reasons.empty());
  EXPECT_EQ(verdict.detail.at("partitions").at(0).at("state"), "running");
  EXPECT_EQ(verdict.detail.at("partitions").at(0).at("lag"), 5);
}

TEST(Ready, NamesWhyTheGroupDoesNotLetItJoinUntilItHasJoined) {
  Worker worker;
  worker.health.refused_by_group("not authorized");
  EXPECT_TRUE(worker.health.ready().ok) << "it is a member all the same";
  worker.health.left();
  EXPECT_TRUE(has(worker.health.ready().reasons, "kafka: no assignment yet: not authorized"));
  worker.health.joined();
  worker.health.left();
  EXPECT_TRUE(has(worker.health.ready().reasons, "kafka: no assignment yet"));
}

TEST(Ready, OfARelayNeedsNoGroup) {
  Health health;
  health.consumes_nothing();
  health.started();
  EXPECT_EQ(health.ready().reasons, std::vector<std::string>{"postgres: not connected yet"});
  health.postgres(true, true);
  EXPECT_TRUE(health.ready().ok);
}

TEST(Ready, FailsClosedWhileNothingIsKnown) {
  const Health health;
  const Verdict verdict = health.ready();
  EXPECT_FALSE(verdict.ok);
  for (const char* reason : {"not started yet", "kafka: no assignment yet",
                             "kafka: not known to be reachable yet", "postgres: not connected yet"})
    EXPECT_TRUE(has(verdict.reasons, reason)) << reason;
  EXPECT_TRUE(health.live().ok);
}

TEST(Ready, FailsForEachSingleTroubleAndTellsWhich) {
  const struct {
    std::string reason;
    std::function<void(Worker&)> trouble;
  } cases[] = {
      {"draining", [](Worker& w) { w.health.draining(); }},
      {"fatal: fenced", [](Worker& w) { w.health.fatal("fenced"); }},
      {"the poll loop has not turned for 31 s", [](Worker& w) { w.now += 31s; }},
      {"kafka: no broker is reachable", [](Worker& w) { w.health.kafka_reachable(false); }},
      {"postgres: down for 7 s: connection refused",
       [](Worker& w) {
         w.health.postgres(false, false, "connection refused");
         w.pass(7s);
         w.health.postgres(false, false, "connection refused");  // another lane sees it too
       }},
      {"postgres: not writable for 0 s: standby",
       [](Worker& w) { w.health.postgres(true, false, "standby"); }},
      {"payments/3: halted: offset_out_of_range",
       [](Worker& w) {
         w.report({PartitionState::halted, "offset_out_of_range", 100, 5, 0});
       }},
      {"payments/3: halted: reason unknown",
       [](Worker& w) {
         w.report({PartitionState::halted, "", 100, 5, 0});
       }},
      {"payments/4: starting", [](Worker& w) { w.health.partition_assigned("payments", 4); }},
  };
  for (const auto& c : cases) {
    Worker worker;
    c.trouble(worker);
    const Verdict verdict = worker.health.ready();
    EXPECT_FALSE(verdict.ok) << c.reason;
    EXPECT_EQ(verdict.reasons, std::vector<std::string>{c.reason});
  }
}

TEST(Ready, SpareWorkerWithoutPartitionsOnceItHasJoined) {
  Health health;
  health.started();
  health.postgres(true, true);
  health.kafka_reachable(true);
  EXPECT_FALSE(health.ready().ok);
  health.joined();
  EXPECT_TRUE(health.ready().ok);
}

TEST(Stalled, OnlyWithWorkAndOnlyAfterTheBound) {
  const struct {
    std::string what;
    PartitionReport report;
    std::string reason;  // 61 s later; empty: ready
  } cases[] = {
      {"in flight",
       {PartitionState::running, "", 100, 0, 2, 1},
       "payments/3: stalled: 1 running, 1 waiting, and the watermark has not moved for 61 s"},
      {"its queue is full",
       {PartitionState::paused_full, "", 100, 900, 500},
       "payments/3: stalled: 0 running, 500 waiting, and the watermark has not moved for 61 s"},
      {"waits for what it was told",
       {PartitionState::running, "the schema registry is away", 100, 0, 1},
       "payments/3: stalled: 0 running, 1 waiting, and the watermark has not moved for 61 s: the "
       "schema registry is away"},
      {"behind, and receives nothing",
       {PartitionState::running, "", 100, 9, 0},
       "payments/3: stalled: 9 behind and the watermark has not moved for 61 s"},
      {"lag unknown",
       {PartitionState::running, "", 100, std::nullopt, 0},
       "payments/3: lag unknown and the watermark has not moved for 61 s"},
      {"at its end", {PartitionState::running, "", 100, 0, 0}, ""},
      {"idle", {PartitionState::idle, "", 100, 0, 0}, ""},
      {"idle, lag unknown", {PartitionState::idle, "", 100, std::nullopt, 0}, ""},
  };
  for (const auto& c : cases) {
    Worker worker;
    worker.report(c.report);
    worker.pass(60s);
    worker.report(c.report);
    EXPECT_TRUE(worker.health.ready().ok) << c.what;
    worker.pass(1s);
    const Verdict verdict = worker.health.ready();
    EXPECT_EQ(verdict.ok, c.reason.empty()) << c.what;
    if (c.reason.empty()) continue;
    EXPECT_EQ(verdict.reasons, std::vector<std::string>{c.reason});
  }
}

TEST(Stalled, NotWhileTheWatermarkMoves) {
  Worker worker;
  for (std::int64_t watermark = 101; watermark < 110; ++watermark) {
    worker.pass(50s);
    worker.report({PartitionState::running, "", watermark, 1000, 2});
    EXPECT_TRUE(worker.health.ready().ok);
  }
}

TEST(Stalled, WorkAfterALongIdleTimeGetsItsWholeTime) {
  Worker worker;
  worker.report({PartitionState::idle, "", 100, 0, 0});
  worker.pass(3600s);
  worker.report({PartitionState::running, "", 100, 1, 1});
  EXPECT_TRUE(worker.health.ready().ok);
  worker.pass(61s);
  EXPECT_FALSE(worker.health.ready().ok);
}

TEST(Partition, IsForgottenWhenItIsGoneAndALateReportDoesNotBringItBack) {
  Worker worker;
  worker.health.partition_gone("payments", 3);
  worker.report({PartitionState::halted, "late", 100, 5, 0});
  EXPECT_TRUE(worker.health.ready().ok);
  EXPECT_TRUE(worker.health.ready().detail.at("partitions").empty());
}

TEST(Live, OnlyByThePollLoopAndFatalErrors) {
  Worker worker;
  worker.health.postgres(false, false, "down");
  worker.health.kafka_reachable(false);
  worker.health.draining();
  worker.report({PartitionState::halted, "x", 100, 5, 0});
  EXPECT_TRUE(worker.health.live().ok);
  worker.now += 30s;
  EXPECT_TRUE(worker.health.live().ok);
  worker.now += 1s;
  EXPECT_FALSE(worker.health.live().ok);
  worker.health.poll_turned();
  EXPECT_TRUE(worker.health.live().ok);
  worker.health.fatal("first");
  worker.health.fatal("second");
  EXPECT_EQ(worker.health.live().reasons, std::vector<std::string>{"fatal: first"});
}

TEST(Verdict, DetailIsJsonForAnyBytesOfAReason) {
  Worker worker;
  worker.report({PartitionState::halted, "bad \xff byte", 100, 5, 0});
  EXPECT_NE(worker.health.ready().detail.dump().find("bad \\\\xff byte"), std::string::npos);
}

}  // namespace
}  // namespace hapax::observe
