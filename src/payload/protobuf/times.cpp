#include "payload/protobuf/times.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "payload/protobuf/wire.hpp"

namespace hapax::payload::protobuf {
namespace {

constexpr std::int64_t kFirstSecond = -62'135'596'800;  // 0001-01-01T00:00:00Z
constexpr std::int64_t kLastSecond = 253'402'300'799;   // 9999-12-31T23:59:59Z
constexpr std::int64_t kMaxDuration = 315'576'000'000;  // seconds: 10,000 years
constexpr std::int64_t kMaxNanos = 999'999'999;

std::string digits(std::int64_t value, std::size_t width) {
  const std::string text = std::to_string(value);
  return std::string(width - std::min(width, text.size()), '0') + text;
}

// Behind the point, in groups of three digits.
std::string fraction(std::int64_t nanos) {
  std::string text = "." + digits(nanos, 9);
  while (text.ends_with("000")) text.resize(text.size() - 3);
  return text == "." ? "" : text;
}

}  // namespace

std::string timestamp_text(std::int64_t seconds, std::int64_t nanos) {
  if (seconds < kFirstSecond || seconds > kLastSecond || nanos < 0 || nanos > kMaxNanos)
    misfit("a google.protobuf.Timestamp is not in the years 1 to 9999");
  using std::chrono::days;
  const std::chrono::sys_seconds time{std::chrono::seconds(seconds)};
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return digits(static_cast<int>(date.year()), 4) + "-" +
         digits(static_cast<unsigned>(date.month()), 2) + "-" +
         digits(static_cast<unsigned>(date.day()), 2) + "T" + digits(clock.hours().count(), 2) +
         ":" + digits(clock.minutes().count(), 2) + ":" + digits(clock.seconds().count(), 2) +
         fraction(nanos) + "Z";
}

std::string duration_text(std::int64_t seconds, std::int64_t nanos) {
  const bool signs_differ = (seconds < 0 && nanos > 0) || (seconds > 0 && nanos < 0);
  if (seconds < -kMaxDuration || seconds > kMaxDuration || nanos < -kMaxNanos ||
      nanos > kMaxNanos || signs_differ)
    misfit("a google.protobuf.Duration is longer than 10,000 years, or has two signs");
  const bool negative = seconds < 0 || nanos < 0;
  return (negative ? "-" : "") + std::to_string(std::abs(seconds)) + fraction(std::abs(nanos)) +
         "s";
}

}  // namespace hapax::payload::protobuf
