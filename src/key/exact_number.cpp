#include "key/exact_number.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace hapax::key {
namespace {

constexpr std::size_t kMaxExponentDigits = 18;

// The value is 0.digits × 10^point; digits have no zeros at either end.
std::string written(bool negative, std::string_view digits, std::int64_t point) {
  const auto count = static_cast<std::int64_t>(digits.size());
  std::string text = negative ? "-" : "";
  if (point > count + kMaxAddedZeros || point < -kMaxAddedZeros) {
    text += digits;
    text += 'e';
    text += std::to_string(point - count);
  } else if (point >= count) {
    text += digits;
    text.append(static_cast<std::size_t>(point - count), '0');
  } else if (point > 0) {
    text += digits.substr(0, static_cast<std::size_t>(point));
    text += '.';
    text += digits.substr(static_cast<std::size_t>(point));
  } else {
    text += "0.";
    text.append(static_cast<std::size_t>(-point), '0');
    text += digits;
  }
  return text;
}

// Nothing if it has too many digits. An empty text is the exponent 0.
std::optional<std::int64_t> exponent_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
  if (text.size() > kMaxExponentDigits) return std::nullopt;
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return negative ? -value : value;
}

}  // namespace

std::optional<std::string> canonical_number(std::string_view number) {
  const bool negative = number.starts_with('-');
  if (negative) number.remove_prefix(1);
  const std::size_t mantissa_end = std::min(number.find_first_of("eE"), number.size());
  const std::string_view mantissa = number.substr(0, mantissa_end);
  const std::string_view exponent_text = number.substr(std::min(mantissa_end + 1, number.size()));

  constexpr std::string_view kDigits = "0123456789";
  const std::size_t whole = std::min(mantissa.find_first_not_of(kDigits), mantissa.size());
  std::string digits(mantissa.substr(0, whole));
  if (whole < mantissa.size()) digits += mantissa.substr(whole + 1);

  const std::size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) return "0";
  const std::size_t last = digits.find_last_not_of('0');
  const auto exponent = exponent_of(exponent_text);
  if (!exponent) return std::nullopt;
  const std::int64_t point =
      static_cast<std::int64_t>(whole) - static_cast<std::int64_t>(first) + *exponent;
  return written(negative, std::string_view(digits).substr(first, last - first + 1), point);
}

}  // namespace hapax::key
