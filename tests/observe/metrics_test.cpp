#include "observe/metrics.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace hapax::observe {
namespace {

using namespace std::chrono_literals;

const Versions kVersions{"0.1.0", "2.0.2", "6.4.5", "15.3"};

bool shows(const Metrics& metrics, const std::string& line) {
  return ("\n" + metrics.text()).find("\n" + line + "\n") != std::string::npos;
}

bool mentions(const Metrics& metrics, const std::string& what) {
  return metrics.text().find(what) != std::string::npos;
}

TEST(Metrics, ShowsEveryCounterOfARouteFromTheStart) {
  Metrics metrics(kVersions);
  metrics.route("payments", "book");
  for (const char* outcome : {"completed", "duplicate", "failed", "skipped"})
    EXPECT_TRUE(shows(metrics, std::string(R"(hapax_messages_total{handler="book",outcome=")") +
                                   outcome + R"(",topic="payments"} 0)"))
        << metrics.text();
  EXPECT_TRUE(shows(metrics, R"(hapax_attempts_total{handler="book",topic="payments"} 0)"));
}

TEST(Metrics, CountsWhatHappenedToMessages) {
  Metrics metrics(kVersions);
  RouteMetrics route = metrics.route("payments", "book");
  route.settled(SettledAs::completed);
  route.settled(SettledAs::duplicate);
  metrics.route("payments", "book").settled(SettledAs::duplicate);  // the same counters
  route.attempted();
  route.received(1000);
  route.dead_lettered("payload_drift");
  route.handler_ran(3ms);
  route.transaction_ended(2s);
  const std::string labels = R"({handler="book",outcome=)";
  EXPECT_TRUE(
      shows(metrics, "hapax_messages_total" + labels + R"("completed",topic="payments"} 1)"));
  EXPECT_TRUE(
      shows(metrics, "hapax_messages_total" + labels + R"("duplicate",topic="payments"} 2)"));
  EXPECT_TRUE(shows(metrics, "hapax_messages_total" + labels + R"("skipped",topic="payments"} 0)"));
  EXPECT_TRUE(shows(metrics, R"(hapax_attempts_total{handler="book",topic="payments"} 1)"));
  EXPECT_TRUE(shows(metrics, R"(hapax_received_bytes_total{topic="payments"} 1000)"));
  EXPECT_TRUE(
      shows(metrics, R"(hapax_dead_letters_total{reason="payload_drift",topic="payments"} 1)"));
  EXPECT_TRUE(shows(metrics, R"(hapax_handler_seconds_bucket{topic="payments",le="0.0025"} 0)"));
  EXPECT_TRUE(shows(metrics, R"(hapax_handler_seconds_bucket{topic="payments",le="0.005"} 1)"));
  EXPECT_TRUE(shows(metrics, R"(hapax_transaction_seconds_sum{topic="payments"} 2)"))
      << metrics.text();
}

TEST(Metrics, ShowsTheWorkersGauges) {
  Metrics metrics(kVersions);
  metrics.in_flight(7);
  metrics.queued(5, 5000);
  metrics.waiting_for_retry(2);
  metrics.lanes(16);
  metrics.lane_became_busy();
  metrics.lane_became_busy();
  metrics.lane_became_free();
  for (const char* line : {"hapax_in_flight 7", "hapax_queue_messages 5", "hapax_queue_bytes 5000",
                           "hapax_retry_waiting 2", "hapax_lanes 16", "hapax_lanes_busy 1"})
    EXPECT_TRUE(shows(metrics, line)) << line;
  EXPECT_TRUE(shows(metrics, R"(hapax_build_info{libpq="15.3",libpqxx="6.4.5",librdkafka="2.0.2",)"
                             R"(version="0.1.0"} 1)"));
}

TEST(Metrics, CountsCheckpointsCommitsAndRebalances) {
  Metrics metrics(kVersions);
  metrics.checkpoint_ended(CheckpointResult::written, 2ms);
  metrics.checkpoint_ended(CheckpointResult::fenced, 2ms);
  metrics.offset_commit_ended(OffsetCommitResult::deferred);
  metrics.rebalanced(RebalanceEvent::lost);
  metrics.serialization_retried();
  metrics.halted("history_lost");
  for (const char* line :
       {R"(hapax_checkpoints_total{result="written"} 1)",
        R"(hapax_checkpoints_total{result="fenced"} 1)",
        R"(hapax_checkpoints_total{result="failed"} 0)", "hapax_checkpoint_seconds_count 2",
        R"(hapax_offset_commits_total{result="deferred"} 1)",
        R"(hapax_offset_commits_total{result="committed"} 0)",
        R"(hapax_rebalances_total{event="lost"} 1)",
        R"(hapax_rebalances_total{event="assigned"} 0)", "hapax_serialization_retries_total 1",
        R"(hapax_halts_total{reason="history_lost"} 1)"})
    EXPECT_TRUE(shows(metrics, line)) << line;
}

TEST(Metrics, ShowReplaysAndWhatWaitsForItsTopic) {
  Metrics metrics(kVersions);
  metrics.replays_open(3);
  metrics.replay_ended(ReplayEnd::completed);
  metrics.replay_ended(ReplayEnd::failed);
  metrics.dead_letters_unpublished(4);
  for (const char* line :
       {"hapax_replays_open 3", R"(hapax_replays_total{outcome="completed"} 1)",
        R"(hapax_replays_total{outcome="refused"} 0)", R"(hapax_replays_total{outcome="failed"} 1)",
        "hapax_dead_letters_unpublished 4"})
    EXPECT_TRUE(shows(metrics, line)) << line;
}

TEST(Metrics, CountsAnOutageOnceHoweverManyLanesSeeIt) {
  Metrics metrics(kVersions);
  EXPECT_TRUE(shows(metrics, "hapax_postgres_up 0"));
  metrics.postgres_came_up();
  EXPECT_TRUE(shows(metrics, "hapax_postgres_up 1"));
  metrics.postgres_went_down();
  metrics.postgres_went_down();
  EXPECT_TRUE(shows(metrics, "hapax_postgres_up 0"));
  EXPECT_TRUE(shows(metrics, "hapax_postgres_outages_total 1"));
  metrics.postgres_came_up();
  metrics.postgres_went_down();
  EXPECT_TRUE(shows(metrics, "hapax_postgres_outages_total 2"));
}

TEST(Metrics, ShowWhetherTheSchemaRegistryOfARouteIsUp) {
  Metrics metrics(kVersions);
  metrics.registry("payments", true);
  EXPECT_TRUE(shows(metrics, R"(hapax_schema_registry_up{topic="payments"} 1)"));
  metrics.registry("payments", false);
  EXPECT_TRUE(shows(metrics, R"(hapax_schema_registry_up{topic="payments"} 0)"));
}

TEST(Metrics, ShowHowLongExpiredKeysHaveStayed) {
  Metrics metrics(kVersions);
  EXPECT_TRUE(shows(metrics, "hapax_retention_behind_seconds 0"));
  metrics.retention_behind(std::chrono::hours(1));
  EXPECT_TRUE(shows(metrics, "hapax_retention_behind_seconds 3600"));
}

TEST(PartitionMetrics, ShowOffsetsExactlyAndOnlyIfKnown) {
  Metrics metrics(kVersions);
  metrics.partition_assigned("payments", 3);
  EXPECT_TRUE(shows(metrics,
                    R"(hapax_partition_state{partition="3",state="starting",topic="payments"} 1)"));
  EXPECT_FALSE(mentions(metrics, "hapax_partition_lag{"));
  metrics.partition_progress("payments", 3, {123456789012, 123456789000, 12});
  EXPECT_TRUE(
      shows(metrics, R"(hapax_partition_watermark{partition="3",topic="payments"} 123456789012)"));
  EXPECT_TRUE(
      shows(metrics, R"(hapax_partition_checkpoint{partition="3",topic="payments"} 123456789000)"));
  EXPECT_TRUE(shows(metrics, R"(hapax_partition_lag{partition="3",topic="payments"} 12)"));
  metrics.partition_progress("payments", 3, {123456789012, 123456789000, std::nullopt});
  EXPECT_FALSE(mentions(metrics, "hapax_partition_lag{"));
}

TEST(PartitionMetrics, ShowTheBlockingOffsetOnlyWhileThereIsOne) {
  Metrics metrics(kVersions);
  metrics.partition_assigned("payments", 3);
  metrics.partition_progress("payments", 3, {7, 7, 12, 7});
  EXPECT_TRUE(
      shows(metrics, R"(hapax_partition_blocked_offset{partition="3",topic="payments"} 7)"));
  metrics.partition_progress("payments", 3, {8, 7, 11});
  EXPECT_FALSE(mentions(metrics, "hapax_partition_blocked_offset{"));
  metrics.partition_progress("payments", 3, {9, 7, 11, 9});
  metrics.partition_gone("payments", 3);
  EXPECT_FALSE(mentions(metrics, "hapax_partition_blocked_offset{"));
}

TEST(PartitionMetrics, ShowForHowLongTheOldestMessageHasNotBeenSettled) {
  using std::chrono::milliseconds;
  Metrics metrics(kVersions);
  const char* const name = "hapax_partition_oldest_unsettled_seconds{";
  metrics.partition_assigned("payments", 3);
  EXPECT_FALSE(mentions(metrics, name)) << "not started";
  metrics.partition_progress("payments", 3, {7, 7, 0, std::nullopt, milliseconds(1500)});
  EXPECT_TRUE(shows(
      metrics, R"(hapax_partition_oldest_unsettled_seconds{partition="3",topic="payments"} 1.5)"));
  metrics.partition_progress("payments", 3, {8, 7, 0, std::nullopt, milliseconds(0)});
  EXPECT_TRUE(shows(
      metrics, R"(hapax_partition_oldest_unsettled_seconds{partition="3",topic="payments"} 0)"));
  metrics.partition_gone("payments", 3);
  EXPECT_FALSE(mentions(metrics, name));
}

TEST(PartitionMetrics, ShowForHowLongTheCheckpointHasBeenDue) {
  using std::chrono::milliseconds;
  Metrics metrics(kVersions);
  const std::string name = "hapax_partition_checkpoint_age_seconds{";
  const std::string series = name + R"(partition="3",topic="payments"} )";
  metrics.partition_assigned("payments", 3);
  metrics.partition_progress("payments", 3, {8, 7, 0, std::nullopt, {}, milliseconds(2500)});
  EXPECT_TRUE(shows(metrics, series + "2.5"));
  metrics.partition_progress("payments", 3, {8, 8, 0, std::nullopt, {}, milliseconds(0)});
  EXPECT_TRUE(shows(metrics, series + "0"));
  metrics.partition_progress("payments", 3, {});
  EXPECT_FALSE(mentions(metrics, name)) << "halted";
}

TEST(PartitionMetrics, ShowExactlyOneState) {
  Metrics metrics(kVersions);
  metrics.partition_assigned("t", 0);
  const struct {
    PartitionState state;
    std::string shown;
  } cases[] = {{PartitionState::running, "running"},
               {PartitionState::idle, "running"},
               {PartitionState::paused_full, "paused"},
               {PartitionState::halted, "halted"},
               {PartitionState::starting, "starting"}};
  for (const auto& c : cases) {
    metrics.partition_state("t", 0, c.state);
    for (const std::string label : {"starting", "running", "paused", "halted"})
      EXPECT_TRUE(shows(metrics, R"(hapax_partition_state{partition="0",state=")" + label +
                                     R"(",topic="t"} )" + (label == c.shown ? "1" : "0")));
  }
}

TEST(PartitionMetrics, VanishWithThePartitionAndStayGone) {
  Metrics metrics(kVersions);
  metrics.partition_assigned("payments", 3);
  metrics.partition_assigned("payments", 4);
  metrics.partition_progress("payments", 3, {1, 1, 1});
  metrics.partition_gone("payments", 3);
  metrics.partition_progress("payments", 3, {2, 2, 2});  // a late lane
  metrics.partition_state("payments", 3, PartitionState::running);
  EXPECT_FALSE(mentions(metrics, R"(partition="3")")) << metrics.text();
  EXPECT_TRUE(mentions(metrics, R"(partition="4")"));
}

TEST(PartitionMetrics, StopAtTheirBoundAndTellIt) {
  Metrics metrics(kVersions, 2);
  for (int partition = 0; partition < 5; ++partition) metrics.partition_assigned("t", partition);
  EXPECT_TRUE(mentions(metrics, R"(partition="1")"));
  EXPECT_FALSE(mentions(metrics, R"(partition="2")"));
  EXPECT_TRUE(shows(metrics, "hapax_partitions_not_shown 3"));
  metrics.partition_gone("t", 4);
  EXPECT_TRUE(shows(metrics, "hapax_partitions_not_shown 2"));
}

TEST(Metrics, ShowsTheMemoryThatTheProcessHasNow) {
  Metrics metrics(kVersions);
  const auto resident = [&] {
    const std::string text = metrics.text();
    const std::string name = "\nprocess_resident_memory_bytes ";
    return std::stod(text.substr(text.find(name) + name.size()));
  };
  const double before = resident();
  const std::string more(64 << 20, 'x');
  EXPECT_NEAR(resident() - before, 64 << 20, 8 << 20) << more.back();
}

TEST(Metrics, BoundsReasonsAndEscapesThem) {
  Metrics metrics(kVersions);
  RouteMetrics route = metrics.route("t", "h");
  route.dead_lettered("bad\xff\"\n");
  EXPECT_TRUE(shows(metrics, R"(hapax_dead_letters_total{reason="bad\\xff\"\n",topic="t"} 1)"))
      << metrics.text();
  for (std::size_t i = 0; i < kMaxReasons + 9; ++i) route.dead_lettered("r" + std::to_string(i));
  EXPECT_TRUE(shows(metrics, R"(hapax_dead_letters_total{reason="other",topic="t"} 10)"));
}

TEST(Metrics, LoseNoCountBetweenThreads) {
  Metrics metrics(kVersions);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, route = metrics.route("t", "h")]() mutable {
      for (int i = 0; i < 1000; ++i) {
        route.settled(SettledAs::completed);
        route.handler_ran(1ms);
        if (i % 100 == 0) metrics.text();
        metrics.partition_assigned("t", i % 3);
        metrics.partition_gone("t", i % 3);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(
      shows(metrics, R"(hapax_messages_total{handler="h",outcome="completed",topic="t"} 4000)"));
  EXPECT_TRUE(shows(metrics, R"(hapax_handler_seconds_count{topic="t"} 4000)"));
}

}  // namespace
}  // namespace hapax::observe
