// Durations and sizes as people write them: "200ms", "3s", "5m", "72h", "7d"; "64KiB", "1MiB".
//
// A duration always has its unit: 30 is seconds to one reader and milliseconds to the next.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hapax::config {

// A whole number and ms, s, m, h or d. Nothing if `text` is no such duration, or too long for
// the type. Thread safety: pure, as all here.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

// A whole number and B, KiB, MiB or GiB (no unit: bytes).
std::optional<std::uint64_t> parse_size(std::string_view text);

// The shortest text that reads as the same value: "1m", "90s", "64KiB".
std::string format_duration(std::chrono::milliseconds duration);
std::string format_size(std::uint64_t bytes);

}  // namespace hapax::config
