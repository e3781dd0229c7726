#include "gate/routes.hpp"

#include <algorithm>

#include "observe/escape.hpp"

namespace hapax::gate {
namespace {

std::vector<std::string> segments_of(std::string_view path) {
  std::vector<std::string> segments;
  for (std::size_t begin = 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    segments.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return segments;
}

bool is_parameter(const std::string& segment) { return segment.starts_with('{'); }

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decoded(const std::string& segment) {
  std::string text;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    if (segment[i] != '%') {
      text += segment[i];
      continue;
    }
    const int high = i + 1 < segment.size() ? digit(segment[i + 1]) : -1;
    const int low = i + 2 < segment.size() ? digit(segment[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    text += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return text;
}

std::optional<std::vector<std::string>> decoded(std::vector<std::string> segments) {
  for (std::string& segment : segments) {
    auto text = decoded(segment);
    if (!text) return std::nullopt;
    segment = *std::move(text);
  }
  return segments;
}

// Whether a path's parameter may have this text. Others change their meaning if a handler makes a
// path or a C string of them.
bool is_value(const std::string& text) {
  return !text.empty() && text != "." && text != ".." && text.find('\0') == std::string::npos &&
         observe::to_valid_utf8(text) == text;
}

}  // namespace

Routes::Routes(const std::vector<config::GateRoute>& routes) : routes_(routes) {
  for (std::size_t i = 0; i < routes.size(); ++i)
    templates_.emplace_back(segments_of(routes[i].path), i);
  std::ranges::stable_sort(templates_, [](const auto& a, const auto& b) {
    return std::ranges::lexicographical_compare(a.first, b.first, {}, is_parameter, is_parameter);
  });
}

std::optional<Routes::Match> Routes::find(std::string_view path) const {
  if (!path.starts_with('/')) return std::nullopt;
  const auto segments = decoded(segments_of(path));
  if (!segments) return std::nullopt;
  for (const auto& [pattern, route] : templates_) {
    const bool fits = std::ranges::equal(
        pattern, *segments,
        [](const std::string& a, const std::string& b) { return is_parameter(a) || a == b; });
    if (!fits) continue;
    Match match{route, {}};
    for (std::size_t i = 0; i < segments->size(); ++i) {
      const std::string& value = (*segments)[i];
      if (!is_parameter(pattern[i])) continue;
      if (!is_value(value)) return std::nullopt;
      match.parameters.emplace_back(pattern[i].substr(1, pattern[i].size() - 2), value);
    }
    return match;
  }
  return std::nullopt;
}

}  // namespace hapax::gate
