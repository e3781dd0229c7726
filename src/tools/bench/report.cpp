#include "tools/bench/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/screen.hpp"

namespace hapax::app {
namespace {

std::string decimals(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

double in_milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

double mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// To so many decimals; divided at the end, so that no 0.30000000000000004 comes out.
double rounded(double value, int digits) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

std::vector<double> all(const std::vector<BenchRound>& rounds, auto value) {
  std::vector<double> values;
  for (const BenchRound& round : rounds) values.push_back(value(round));
  return values;
}

Json latency_json(const BenchLatency& latency) {
  Json json{{"mode", latency.mode},
            {"batch", latency.batch},
            {"rate", rounded(latency.rate, 0)},
            {"sent", latency.sent},
            {"settled", latency.sorted.size()}};
  if (latency.sorted.empty()) return json;
  for (const auto& [name, percent] :
       {std::pair{"p50_ms", 50.0}, {"p99_ms", 99.0}, {"p99_9_ms", 99.9}, {"max_ms", 100.0}})
    json[name] = rounded(in_milliseconds(percentile(latency.sorted, percent)), 3);
  return json;
}

Json sizing_json(const BenchSizing& sizing) {
  return {{"mode", sizing.mode},
          {"batch", sizing.batch},
          {"target", rounded(sizing.target, 0)},
          {"workers", sizing.workers},
          {"lanes", sizing.lanes},
          {"connections", sizing.connections},
          {"catch_up_seconds", rounded(sizing.catch_up_seconds, 0)},
          {"retention_seconds", sizing.retention.count()},
          {"key_bytes", rounded(sizing.key_bytes, 0)}};
}

}  // namespace

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::chrono::nanoseconds percentile(std::span<const std::chrono::nanoseconds> sorted,
                                    double percent) {
  // Half a rank less than nothing: 99.9 % of 1000 is 999, for any last bit.
  const double rank = std::ceil(percent / 100 * static_cast<double>(sorted.size()) - 1e-6);
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

double BenchThroughput::per_second() const {
  return median(all(rounds, [](const BenchRound& round) { return round.per_second; }));
}

double BenchThroughput::bare_per_second() const {
  return median(all(rounds, [](const BenchRound& round) { return round.bare_per_second; }));
}

std::size_t BenchThroughput::memory_bytes() const {
  return std::ranges::max(rounds, {}, &BenchRound::memory_bytes).memory_bytes;
}

double BenchThroughput::share() const {
  return median(all(
      rounds, [](const BenchRound& round) { return round.per_second / round.bare_per_second; }));
}

Json to_json(const BenchReport& report) {
  Json throughput = Json::array();
  for (const BenchThroughput& mode : report.throughput) {
    Json rounds = Json::array();
    for (const BenchRound& round : mode.rounds)
      rounds.push_back({{"per_second", rounded(round.per_second, 0)},
                        {"bare_per_second", rounded(round.bare_per_second, 0)}});
    throughput.push_back({{"mode", mode.mode},
                          {"batch", mode.batch},
                          {"share", rounded(mode.share(), 3)},
                          {"per_second", rounded(mode.per_second(), 0)},
                          {"bare_per_second", rounded(mode.bare_per_second(), 0)},
                          {"memory_mib", rounded(mebibytes(mode.memory_bytes()), 1)},
                          {"rounds", std::move(rounds)}});
  }
  Json latency = Json::array();
  for (const BenchLatency& each : report.latency) latency.push_back(latency_json(each));
  Json sizing = Json::array();
  for (const BenchSizing& each : report.sizing) sizing.push_back(sizing_json(each));
  return {{"ground", report.ground}, {"options", report.options}, {"throughput", throughput},
          {"latency", latency},      {"sizing", sizing},          {"exact", report.wrong.empty()},
          {"wrong", report.wrong}};
}

void print(const BenchReport& report) {
  const auto number = [](double value) { return grouped(std::llround(value)); };
  Table throughput(
      {"MODE", "BATCH", "OF THE BARE LOOP", "HAPAX/S", "BARE LOOP/S", "MEMORY", "ROUNDS"});
  for (const BenchThroughput& mode : report.throughput)
    throughput.add({mode.mode, std::to_string(mode.batch), decimals(100 * mode.share(), 0) + " %",
                    number(mode.per_second()), number(mode.bare_per_second()),
                    decimals(mebibytes(mode.memory_bytes()), 0) + " MiB",
                    std::to_string(mode.rounds.size())});
  throughput.print();
  if (report.latency.empty()) return;
  print_line("");
  Table latency({"MODE", "BATCH", "LOAD/S", "SETTLED", "P50 MS", "P99 MS", "P99.9 MS", "MAX MS"});
  for (const BenchLatency& each : report.latency) {
    std::vector<std::string> cells = {
        each.mode, std::to_string(each.batch), number(each.rate),
        std::to_string(each.sorted.size()) + " of " + std::to_string(each.sent)};
    for (const double percent : {50.0, 99.0, 99.9, 100.0})
      cells.push_back(each.sorted.empty()
                          ? "-"
                          : decimals(in_milliseconds(percentile(each.sorted, percent)), 1));
    latency.add(std::move(cells));
  }
  latency.print();
}

}  // namespace hapax::app
