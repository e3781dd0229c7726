// Protobuf's wire format: a message is fields one after another, each with its number and value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "payload/decoder.hpp"

namespace hapax::payload::protobuf {

// Messages in messages. Message::json() reads what comes of it, because a message in a list or a
// map is two levels of JSON. Other people's parsers read 100 levels.
inline constexpr std::size_t kMaxLevels = kMaxJsonDepth / 2 - 1;

inline constexpr const char* kNoFit = "the payload does not fit its Protobuf schema: ";

[[noreturn]] inline void misfit(const std::string& why) { throw NotDecodable(kNoFit + why); }

enum class WireType { varint = 0, fixed64 = 1, bytes = 2, group = 3, fixed32 = 5 };

struct WireField {
  int number = 0;
  WireType type = WireType::varint;
  std::uint64_t scalar = 0;  // of varint, fixed64, fixed32
  std::string_view bytes;    // of bytes; of a group, the fields in it
};

// Takes a field off the front of a message that is not empty. Lifetime: it points into the message.
// Throws: NotDecodable. Thread safety: pure.
WireField take_field(std::string_view& rest);

// Takes one value of a packed list off the front. Throws, thread safety: as take_field().
std::uint64_t take_scalar(std::string_view& rest, WireType type);

}  // namespace hapax::payload::protobuf
