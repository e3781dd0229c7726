// google.protobuf.Timestamp and Duration as text, as in Protobuf's own JSON.
#pragma once

#include <cstdint>
#include <string>

namespace hapax::payload::protobuf {

// "2026-11-24T10:00:00.5Z" with 0, 3, 6 or 9 digits behind the point.
// Throws: NotDecodable, if it is not in the years 1 to 9999. Thread safety: pure.
std::string timestamp_text(std::int64_t seconds, std::int64_t nanos);

// "-1.500s", with as many digits.
// Throws: NotDecodable, if it is longer than 10,000 years. Thread safety: pure.
std::string duration_text(std::int64_t seconds, std::int64_t nanos);

}  // namespace hapax::payload::protobuf
