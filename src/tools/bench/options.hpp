// What one may ask of `hapax bench`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace hapax::app {

inline constexpr const char* kBenchModes[] = {"message", "batch", "positions", "duplicates"};

struct BenchOptions {
  std::string config;
  std::string url;
  std::size_t messages = 50'000;
  std::size_t lanes = 0;
  std::size_t batch = 100;
  std::size_t payload_bytes = 200;
  int partitions = 8;
  std::size_t rounds = 3;
  std::vector<std::string> modes;
  std::size_t keys = 0;
  double postgres_delay_ms = 0;
  std::string durability = "synchronous";
  double rate = 0;
  double target = 0;
  std::size_t seconds = 10;
  bool json = false;
  std::string svg;
};

// All of them, and the text below them.
void add_bench_options(CLI::App& command, BenchOptions& options);

}  // namespace hapax::app
