// The arithmetic of `hapax bench`.
#include "tools/bench/report.hpp"

#include <gtest/gtest.h>

#include "tools/bench/messages.hpp"
#include "tools/bench/meter.hpp"
#include "tools/bench/sizing.hpp"

namespace hapax::app {
namespace {

using std::chrono::nanoseconds;

std::vector<nanoseconds> up_to(int last) {
  std::vector<nanoseconds> all;
  for (int n = 1; n <= last; ++n) all.emplace_back(n);
  return all;
}

TEST(BenchReport, TheMedianIsTheMiddleOneInAnyOrder) {
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({4, 1, 9, 2}), 3);
  EXPECT_EQ(median({7}), 7);
}

TEST(BenchReport, APercentileIsTheValueThatSoManyDoNotExceed) {
  const auto thousand = up_to(1000);
  EXPECT_EQ(percentile(thousand, 50), nanoseconds(500));
  EXPECT_EQ(percentile(thousand, 99), nanoseconds(990));
  EXPECT_EQ(percentile(thousand, 99.9), nanoseconds(999));
  EXPECT_EQ(percentile(thousand, 100), nanoseconds(1000));
  EXPECT_EQ(percentile(thousand, 0), nanoseconds(1));
  EXPECT_EQ(percentile(up_to(1), 99.9), nanoseconds(1));
  EXPECT_EQ(percentile(up_to(3), 50), nanoseconds(2));
}

TEST(BenchReport, TheShareIsTakenWithinARound) {
  // The machine was half as fast in the second round and twice as fast in the third.
  const BenchThroughput mode{"message", 1, {{90, 100}, {45, 50}, {180, 200}}};
  EXPECT_DOUBLE_EQ(mode.share(), 0.9);
  EXPECT_EQ(mode.per_second(), 90);
  EXPECT_EQ(mode.bare_per_second(), 100);
}

TEST(BenchReport, ASvgHasABarForEachPaceAndACurveForEachLatency) {
  BenchReport report;
  report.throughput = {{"message", 1, {{90, 100}}}, {"batch", 100, {{900, 1000}}}};
  report.latency = {{"message", 1, 45, 1000, up_to(1000)}};
  const std::string svg = to_svg(report);
  const auto count = [&](const std::string& what) {
    int found = 0;
    for (std::size_t at = 0; (at = svg.find(what, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("<rect x="), 4);
  EXPECT_EQ(count("<polyline"), 1);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(BenchSizing, TakesAsManyWorkersAsCarryTheTargetAtSevenTenthsOfTheirPace) {
  const BenchThroughput mode{"message", 1, {{1000, 1000}}};
  const auto workers = [&](double target) {
    return size_for(mode, {target, 8, std::chrono::hours(168)}).workers;
  };
  EXPECT_EQ(workers(1), 1U);
  EXPECT_EQ(workers(700), 1U);
  EXPECT_EQ(workers(701), 2U);
  EXPECT_EQ(workers(1400), 2U);
  EXPECT_EQ(workers(7001), 11U);
}

TEST(BenchSizing, TellsConnectionsCatchUpAndDisk) {
  const BenchThroughput mode{"batch", 100, {{2000, 1000}}};
  const BenchSizing sizing = size_for(mode, {1000, 8, std::chrono::hours(168)});
  EXPECT_EQ(sizing.workers, 1U);
  EXPECT_EQ(sizing.connections, 14U);
  EXPECT_DOUBLE_EQ(sizing.catch_up_seconds, 3600);  // 3.6 million, at 1,000/s beside what comes
  EXPECT_NEAR(sizing.key_bytes, 200e9, 1e9);        // as docs/operating.md has it
  EXPECT_EQ(to_text(sizing),
            "batch of 100, 1,000 messages/s: 1 worker of 8 lanes, each at most 70 % busy; up to 14 "
            "connections to PostgreSQL. After an hour's outage the backlog is gone in 60 min. Keys "
            "that are kept for 7 days take 200 GB.");
}

TEST(BenchSizing, WithoutATargetIsWhatOneWorkerIsPlannedToCarry) {
  const BenchSizing sizing =
      size_for({"message", 1, {{1000, 1000}}}, {0, 4, std::chrono::hours(1)});
  EXPECT_DOUBLE_EQ(sizing.target, 700);
  EXPECT_EQ(sizing.workers, 1U);
}

TEST(BenchSizing, PositionsKeepNoKeys) {
  const BenchSizing sizing =
      size_for({kPositionsMode, 100, {{1000, 1000}}}, {0, 4, std::chrono::hours(1)});
  EXPECT_EQ(sizing.key_bytes, 0);
  EXPECT_TRUE(to_text(sizing).ends_with("No keys are kept."));
}

TEST(RateMeter, IsDoneWithTheLastMessageAndLeavesTheWarmUpOut) {
  RateMeter meter(100, 50);
  EXPECT_FALSE(meter.wait(std::chrono::milliseconds(0)));
  meter.settled(60);
  meter.settled(39);
  EXPECT_FALSE(meter.wait(std::chrono::milliseconds(0)));
  meter.settled(1);
  EXPECT_TRUE(meter.wait(std::chrono::milliseconds(0)));
  EXPECT_GT(meter.per_second(), 0);
  EXPECT_EQ(meter.count(), 100U);
}

TEST(LatencyMeter, CountsFromWhenAMessageWasDueNotFromWhenItWasSent) {
  LatencyMeter meter(3, 1e9);
  meter.begin();
  EXPECT_EQ(meter.due(2) - meter.due(0), nanoseconds(2));
  const auto before = LatencyMeter::Clock::now() - meter.due(1);
  meter.settled(1);
  meter.settled(7);  // of the warm-up: counted, not measured
  EXPECT_EQ(meter.count(), 2U);
  ASSERT_EQ(meter.sorted().size(), 1U);
  EXPECT_GE(meter.sorted()[0], before);
}

TEST(BenchMessages, AreDifferentAndOfTheSizeThatWasAskedFor) {
  const auto payments = bench_payments(3, 4, 300);
  EXPECT_EQ(payments[2].payload.size(), 300U);
  EXPECT_NE(payments[1].key, payments[2].key);
  EXPECT_NE(payments[1].payload, payments[2].payload);
  EXPECT_EQ(number_of(payments[2].key), 2U);
  EXPECT_EQ(nlohmann::json::parse(payments[2].payload).at("id"), payments[2].key);
}

}  // namespace
}  // namespace hapax::app
