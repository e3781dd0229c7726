#include "cli/coordinates.hpp"

#include <charconv>

namespace hapax::app {
namespace {

// The whole of `text` as a number from 0 on.
template <class Number>
bool read(std::string_view text, std::optional<Number>& number) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < 0) return false;
  number = value;
  return true;
}

}  // namespace

std::optional<Place> parse_place(std::string_view text) {
  Place place;
  const std::size_t first = text.find('/');
  place.topic = text.substr(0, first);
  if (place.topic.empty()) return std::nullopt;
  if (first == std::string_view::npos) return place;
  text.remove_prefix(first + 1);
  const std::size_t second = text.find('/');
  if (!read(text.substr(0, second), place.partition)) return std::nullopt;
  if (second == std::string_view::npos) return place;
  if (!read(text.substr(second + 1), place.offset)) return std::nullopt;
  return place;
}

}  // namespace hapax::app
