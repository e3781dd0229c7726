// What `hapax bench` found: the figures, and how they are shown.
//
// Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cli/output.hpp"

namespace hapax::app {

// The middle one; the mean of the two middle ones of an even number. Precondition: not empty.
double median(std::vector<double> values);

// The value that `percent` of them do not exceed (nearest rank). Precondition: sorted, not empty.
std::chrono::nanoseconds percentile(std::span<const std::chrono::nanoseconds> sorted,
                                    double percent);

// The mode whose messages are known by their positions, without keys.
inline constexpr const char* kPositionsMode = "positions";

struct BenchRound {
  double per_second = 0;         // hapax, through Kafka
  double bare_per_second = 0;    // the bare loop, right before it
  std::size_t memory_bytes = 0;  // at most, beyond what the process had before hapax ran
};

struct BenchThroughput {
  std::string mode;
  std::size_t batch = 1;
  std::vector<BenchRound> rounds = {};

  double per_second() const;
  double bare_per_second() const;
  std::size_t memory_bytes() const;  // of the round that took most
  // Median of the rounds' own shares: what slows the machine slows both of a round.
  double share() const;
};

struct BenchLatency {
  std::string mode;
  std::size_t batch = 1;
  double rate = 0;
  std::size_t sent = 0;
  std::vector<std::chrono::nanoseconds> sorted = {};  // of those that were settled in time
};

// What `target` messages/s need, at the pace of one worker; see sizing.hpp.
struct BenchSizing {
  std::string mode;
  std::size_t batch = 1;
  std::size_t lanes = 1;
  double pace = 0;    // messages/s of one worker
  double target = 0;  // messages/s of all workers
  std::size_t workers = 1;
  std::size_t connections = 0;  // of all workers to PostgreSQL, at most
  double catch_up_seconds = 0;  // for the backlog of an hour, while messages go on to come
  std::chrono::seconds retention{0};
  double key_bytes = 0;  // on PostgreSQL's disk; 0: no keys are kept
};

struct BenchReport {
  Json ground;   // the machine and the servers
  Json options;  // what was asked for
  std::vector<BenchThroughput> throughput = {};
  std::vector<BenchLatency> latency = {};
  std::vector<BenchSizing> sizing = {};
  std::vector<std::string> wrong = {};  // what was not booked once, a sentence each
};

Json to_json(const BenchReport& report);
void print(const BenchReport& report);

// Bars of throughput and the curve of latency, as one SVG picture.
std::string to_svg(const BenchReport& report);

}  // namespace hapax::app
