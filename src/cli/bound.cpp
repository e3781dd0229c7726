#include "cli/bound.hpp"

#include <charconv>
#include <chrono>

namespace hapax::app {
namespace {

// Takes `digits` digits off the front; nothing if they are not there.
std::optional<int> take(std::string_view& text, std::size_t digits) {
  int value = 0;
  if (text.size() < digits) return std::nullopt;
  const char* const end = text.data() + digits;
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool skip(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::chrono::sys_days> take_date(std::string_view& text) {
  using namespace std::chrono;
  const auto y = take(text, 4);
  if (!y || !skip(text, '-')) return std::nullopt;
  const auto m = take(text, 2);
  if (!m || !skip(text, '-')) return std::nullopt;
  const auto d = take(text, 2);
  if (!d) return std::nullopt;
  const year_month_day date(year(*y), month(static_cast<unsigned>(*m)),
                            day(static_cast<unsigned>(*d)));
  return date.ok() ? std::optional(sys_days(date)) : std::nullopt;
}

// "09:30" or "09:30:05".
std::optional<std::chrono::seconds> take_time(std::string_view& text) {
  const auto hours = take(text, 2);
  if (!hours || *hours > 23 || !skip(text, ':')) return std::nullopt;
  const auto minutes = take(text, 2);
  if (!minutes || *minutes > 59) return std::nullopt;
  int second = 0;
  if (skip(text, ':')) {
    const auto found = take(text, 2);
    if (!found || *found > 59) return std::nullopt;
    second = *found;
  }
  return std::chrono::hours(*hours) + std::chrono::minutes(*minutes) + std::chrono::seconds(second);
}

}  // namespace

std::optional<Bound> parse_bound(std::string_view text) {
  std::int64_t offset = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, offset);
  if (error == std::errc() && rest == end && offset >= 0) return Bound{false, offset};
  const auto date = take_date(text);
  if (!date) return std::nullopt;
  std::chrono::seconds time{0};
  if (skip(text, 'T')) {
    const auto found = take_time(text);
    if (!found) return std::nullopt;
    time = *found;
    skip(text, 'Z');
  }
  if (!text.empty()) return std::nullopt;
  return Bound{true, std::chrono::milliseconds(date->time_since_epoch() + time).count()};
}

}  // namespace hapax::app
