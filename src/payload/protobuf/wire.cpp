#include "payload/protobuf/wire.hpp"

#include <limits>
#include <vector>

#include "payload/varint.hpp"

namespace hapax::payload::protobuf {
namespace {

constexpr unsigned kGroupEnd = 4;

struct Tag {
  int number = 0;
  unsigned type = 0;
};

std::uint64_t take_varint(std::string_view& rest) {
  const auto value = read_varint(rest);
  if (!value) misfit("a number ends early, or has more than 64 bits");
  return *value;
}

Tag take_tag(std::string_view& rest) {
  const std::uint64_t tag = take_varint(rest);
  if (tag > std::numeric_limits<std::uint32_t>::max() || tag >> 3 == 0)
    misfit("a field has a number that there is not");
  return {static_cast<int>(tag >> 3), static_cast<unsigned>(tag & 7)};
}

std::string_view take_bytes(std::string_view& rest, std::uint64_t count) {
  if (count > rest.size()) misfit("it ends early");
  const std::string_view taken = rest.substr(0, count);
  rest.remove_prefix(count);
  return taken;
}

// What stands before the end of a group that has begun.
std::string_view take_group(std::string_view& rest, int number) {
  const std::string_view whole = rest;
  std::vector<int> open{number};
  for (;;) {
    const std::size_t length = whole.size() - rest.size();
    const Tag tag = take_tag(rest);
    if (tag.type == kGroupEnd) {
      if (tag.number != open.back()) misfit("a group ends that has not begun");
      open.pop_back();
      if (open.empty()) return whole.substr(0, length);
    } else if (tag.type == static_cast<unsigned>(WireType::group)) {
      if (open.size() >= kMaxLevels) misfit("it nests too deep");
      open.push_back(tag.number);
    } else if (tag.type == static_cast<unsigned>(WireType::bytes)) {
      take_bytes(rest, take_varint(rest));
    } else {
      take_scalar(rest, static_cast<WireType>(tag.type));
    }
  }
}

}  // namespace

std::uint64_t take_scalar(std::string_view& rest, WireType type) {
  if (type == WireType::varint) return take_varint(rest);
  if (type != WireType::fixed32 && type != WireType::fixed64)
    misfit("a field is of a kind that there is not");
  const std::string_view bytes = take_bytes(rest, type == WireType::fixed32 ? 4 : 8);
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

WireField take_field(std::string_view& rest) {
  const Tag tag = take_tag(rest);
  WireField field{.number = tag.number, .type = static_cast<WireType>(tag.type)};
  if (field.type == WireType::bytes)
    field.bytes = take_bytes(rest, take_varint(rest));
  else if (field.type == WireType::group)
    field.bytes = take_group(rest, tag.number);
  else
    field.scalar = take_scalar(rest, field.type);
  return field;
}

}  // namespace hapax::payload::protobuf
