#include "tools/bench/sizing.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/screen.hpp"

namespace hapax::app {
namespace {

// Of an idempotency key with its indexes, without a result: docs/operating.md, "Disk".
constexpr double kKeyBytes = 330;
// Of a worker beside those of its lanes, without a relay: docs/operating.md.
constexpr std::size_t kOtherConnections = 6;
constexpr double kOutageSeconds = 3600;

std::string time_text(double seconds) {
  if (seconds < 120) return grouped(std::llround(seconds)) + " s";
  if (seconds < 7200) return grouped(std::llround(seconds / 60)) + " min";
  if (seconds < 172'800) return grouped(std::llround(seconds / 3600)) + " h";
  return grouped(std::llround(seconds / 86'400)) + " days";
}

std::string size_text(double bytes) {
  char text[64];
  std::snprintf(text, sizeof text, bytes < 1e9 ? "%.2g" : "%.0f", bytes / 1e9);
  return std::string(text) + " GB";
}

}  // namespace

BenchSizing size_for(const BenchThroughput& measured, const BenchWish& wish) {
  BenchSizing sizing;
  sizing.mode = measured.mode;
  sizing.batch = measured.batch;
  sizing.lanes = wish.lanes;
  sizing.pace = measured.per_second();
  const double planned = kPlannedLoad * sizing.pace;
  sizing.target = wish.target > 0 ? wish.target : planned;
  // A rate that is a whole number of workers needs no other one for its last bit.
  sizing.workers =
      static_cast<std::size_t>(std::max(1.0, std::ceil(sizing.target / planned - 1e-9)));
  const auto workers = static_cast<double>(sizing.workers);
  sizing.connections = sizing.workers * (wish.lanes + kOtherConnections);
  sizing.catch_up_seconds =
      kOutageSeconds * sizing.target / (workers * sizing.pace - sizing.target);
  sizing.retention = wish.retention;
  if (measured.mode != kPositionsMode)
    sizing.key_bytes = kKeyBytes * sizing.target * static_cast<double>(wish.retention.count());
  return sizing;
}

std::string to_text(const BenchSizing& sizing) {
  const auto number = [](auto value) { return grouped(std::llround(static_cast<double>(value))); };
  const std::string keys = sizing.key_bytes > 0
                               ? "Keys that are kept for " +
                                     time_text(static_cast<double>(sizing.retention.count())) +
                                     " take " + size_text(sizing.key_bytes) + "."
                               : "No keys are kept.";
  return sizing.mode + (sizing.batch > 1 ? " of " + number(sizing.batch) : "") + ", " +
         number(sizing.target) + " messages/s: " + number(sizing.workers) +
         (sizing.workers == 1 ? " worker of " : " workers of ") + number(sizing.lanes) +
         " lanes, each at most 70 % busy; up to " + number(sizing.connections) +
         " connections to PostgreSQL. After an hour's outage the backlog is gone in " +
         time_text(sizing.catch_up_seconds) + ". " + keys;
}

}  // namespace hapax::app
