// Varints, as Protobuf writes numbers, and zigzag varints, as Avro and Confluent's framing do.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hapax::payload {

// Takes one off the front. Nothing: the bytes end in it, or it has more than 64 bits.
// Thread safety: pure.
inline std::optional<std::uint64_t> read_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (i == 9 && byte > 1) return std::nullopt;
    value |= std::uint64_t{byte & 0x7fU} << (7 * i);
    if ((byte & 0x80U) != 0) continue;
    bytes.remove_prefix(i + 1);
    return value;
  }
  return std::nullopt;
}

inline std::int64_t from_zigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

// As read_varint().
inline std::optional<std::int64_t> read_zigzag(std::string_view& bytes) {
  const auto value = read_varint(bytes);
  return value ? std::optional(from_zigzag(*value)) : std::nullopt;
}

}  // namespace hapax::payload
