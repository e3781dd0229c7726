#include "config/units.hpp"

#include <charconv>
#include <limits>
#include <span>

namespace hapax::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// From small to large.
constexpr Unit kDurations[] = {
    {"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
constexpr Unit kSizes[] = {{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};

// Never more than fits into a signed 64-bit number.
std::optional<std::uint64_t> parse(std::string_view text, std::span<const Unit> units) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view name(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const Unit& unit : units)
    if (unit.name == name && number <= kMax / unit.factor) return number * unit.factor;
  return std::nullopt;
}

std::string format(std::uint64_t value, std::span<const Unit> units) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < units.size(); ++i)
    if (value != 0 && value % units[i].factor == 0) best = i;
  return std::to_string(value / units[best].factor) + std::string(units[best].name);
}

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto value = parse(text, kDurations);
  if (!value) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(*value));
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::string with_unit(text);
  if (!text.empty() && text.back() >= '0' && text.back() <= '9') with_unit += 'B';
  return parse(with_unit, kSizes);
}

std::string format_duration(std::chrono::milliseconds duration) {
  return format(static_cast<std::uint64_t>(duration.count()), kDurations);
}

std::string format_size(std::uint64_t bytes) { return format(bytes, kSizes); }

}  // namespace hapax::config
