// How many workers a rate needs, by the pace that `hapax bench` measured, and what follows from it.
//
// Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "tools/bench/report.hpp"

namespace hapax::app {

// What a worker is planned to carry of its pace: the rest lets a backlog shrink.
inline constexpr double kPlannedLoad = 0.7;

struct BenchWish {
  double target = 0;  // messages/s of the whole group; 0: what one worker is planned to carry
  std::size_t lanes = 1;
  std::chrono::seconds retention{0};  // of keys
};

// Precondition: `measured` has rounds, and its pace is above 0.
BenchSizing size_for(const BenchThroughput& measured, const BenchWish& wish);

// As sentences.
std::string to_text(const BenchSizing& sizing);

}  // namespace hapax::app
