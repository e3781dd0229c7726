// One end of a range of messages as operators type it: an offset, or a time in UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hapax::app {

struct Bound {
  bool is_time = false;
  std::int64_t value = 0;  // the offset, or milliseconds since 1970

  bool operator==(const Bound&) const = default;
};

// "1042", "2026-11-01", "2026-11-01T09:30" or "2026-11-01T09:30:05", with or without a Z. Nothing
// if it is none of these. Thread safety: pure.
std::optional<Bound> parse_bound(std::string_view text);

}  // namespace hapax::app
