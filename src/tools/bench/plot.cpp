// The picture of `hapax bench`: bars of throughput above, curves of latency below.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/bench/report.hpp"
#include "tools/screen.hpp"

namespace hapax::app {
namespace {

constexpr double kWidth = 720, kLeft = 120, kRight = 600;
constexpr double kBar = 18, kCurves = 240;
constexpr const char* kHapax = "#2563eb";
constexpr const char* kBare = "#9ca3af";
constexpr const char* kColours[] = {"#2563eb", "#d97706"};
constexpr double kPercents[] = {0, 50, 90, 99, 99.9};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string text_at(double x, double y, const std::string& text, const char* anchor = "start") {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" +
         text + "</text>\n";
}

std::string bar(double y, double share, const char* colour, const std::string& label) {
  const double width = share * (kRight - kLeft);
  return "<rect x=\"" + number(kLeft) + "\" y=\"" + number(y) + "\" width=\"" + number(width) +
         "\" height=\"" + number(kBar) + "\" fill=\"" + colour + "\"/>\n" +
         text_at(kLeft + width + 6, y + 14, label);
}

std::string bars(const std::vector<BenchThroughput>& modes, double& y) {
  double most = 1;
  for (const auto& mode : modes) most = std::max({most, mode.per_second(), mode.bare_per_second()});
  std::string svg = text_at(10, y, "messages/s: hapax through Kafka, and the bare loop");
  y += 14;
  for (const BenchThroughput& mode : modes) {
    const auto rate = [](double value) { return grouped(std::llround(value)); };
    svg += text_at(kLeft - 8, y + 24, mode.mode, "end");
    svg += bar(y, mode.per_second() / most, kHapax, "hapax " + rate(mode.per_second()));
    svg += bar(y + kBar + 2, mode.bare_per_second() / most, kBare,
               "bare " + rate(mode.bare_per_second()));
    y += 2 * kBar + 14;
  }
  return svg;
}

// Percentiles to the right, each nine as wide as the one before; milliseconds upwards.
std::string curves(const std::vector<BenchLatency>& all, double& y) {
  const auto ms = [](const BenchLatency& latency, double percent) {
    return std::chrono::duration<double, std::milli>(percentile(latency.sorted, percent)).count();
  };
  const auto across = [](double percent) {
    return kLeft + (kRight - kLeft) * -std::log10(1 - percent / 100) / 3;
  };
  double most = 0;
  for (const BenchLatency& latency : all)
    if (!latency.sorted.empty()) most = std::max(most, ms(latency, 99.9));
  if (most <= 0) return "";
  std::string svg = text_at(10, y += 20, "latency from due to COMMIT, ms, by percentile");
  const double top = y + 14, bottom = top + kCurves;
  for (const double percent : kPercents)
    svg += text_at(across(percent), bottom + 18, number(percent), "middle");
  for (const double part : {0.0, 0.5, 1.0})
    svg += text_at(kLeft - 8, bottom - part * kCurves + 4, number(part * most), "end");
  std::size_t n = 0;
  for (const BenchLatency& latency : all) {
    if (latency.sorted.empty()) continue;
    const std::string colour = kColours[n++ % std::size(kColours)];
    svg += "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" + colour + "\" points=\"";
    for (double nines = 0; nines <= 3.0001; nines += 0.05) {
      const double percent = std::min(99.9, 100 * (1 - std::pow(10, -nines)));
      svg += number(across(percent)) + "," +
             number(bottom - ms(latency, percent) / most * kCurves) + " ";
    }
    svg += "\"/>\n<g fill=\"" + colour + "\">" +
           text_at(kLeft + 10, top + 18 * static_cast<double>(n),
                   latency.mode + " at " + grouped(std::llround(latency.rate)) + "/s") +
           "</g>\n";
  }
  y = bottom + 30;
  return svg;
}

}  // namespace

std::string to_svg(const BenchReport& report) {
  double y = 24;
  std::string body = bars(report.throughput, y);
  body += curves(report.latency, y);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(kWidth) + "\" height=\"" +
         number(y) + "\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" " +
         "height=\"100%\" fill=\"white\"/>\n" + body + "</svg>\n";
}

}  // namespace hapax::app
