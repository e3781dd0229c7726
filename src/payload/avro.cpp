#include "payload/avro.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "key/base64.hpp"
#include "payload/varint.hpp"

namespace hapax::payload {
namespace {

using Kind = AvroType::Kind;

constexpr std::size_t kMaxLevels = 2 * kMaxJsonDepth;  // a union is a level without a bracket
constexpr std::size_t kMaxDecimal = 128;               // bytes: 308 digits

[[noreturn]] void does_not_fit(const std::string& why) {
  throw NotDecodable("the payload does not fit its Avro schema: " + why);
}

// The two's complement of `bytes`, in decimal.
std::string decimal_text(std::string_view bytes, int scale) {
  if (bytes.empty()) does_not_fit("a decimal has no bytes");
  if (bytes.size() > kMaxDecimal)
    does_not_fit("a decimal has more than " + std::to_string(kMaxDecimal) + " bytes");
  std::vector<std::uint8_t> rest(bytes.begin(), bytes.end());
  const bool negative = (rest[0] & 0x80U) != 0;
  if (negative) {
    for (auto& byte : rest) byte = static_cast<std::uint8_t>(~byte);
    for (std::size_t i = rest.size(); i-- > 0 && ++rest[i] == 0;) {
    }
  }
  std::string digits;  // the last first
  while (std::ranges::any_of(rest, [](std::uint8_t byte) { return byte != 0; })) {
    unsigned remainder = 0;
    for (auto& byte : rest) {
      const unsigned value = remainder << 8 | byte;
      byte = static_cast<std::uint8_t>(value / 10);
      remainder = value % 10;
    }
    digits += static_cast<char>('0' + remainder);
  }
  const auto places = static_cast<std::size_t>(scale);
  if (digits.size() <= places) digits.append(places + 1 - digits.size(), '0');
  if (places > 0) digits.insert(places, ".");
  if (negative) digits += '-';
  std::ranges::reverse(digits);
  return digits;
}

class Decoding {
 public:
  Decoding(std::string_view bytes, std::size_t max) : rest_(bytes), max_(max) {}

  std::string whole(const AvroType& type) {
    value(type, 0);
    if (!rest_.empty()) does_not_fit(std::to_string(rest_.size()) + " bytes are left over");
    return std::move(text_);
  }

 private:
  void value(const AvroType& type, std::size_t level) {
    if (level > kMaxLevels) does_not_fit("it nests too deep");
    switch (type.kind) {
      case Kind::null: return add("null");
      case Kind::boolean: return boolean();
      case Kind::int32:
        return add(std::to_string(number(std::numeric_limits<std::int32_t>::min(),
                                         std::numeric_limits<std::int32_t>::max())));
      case Kind::int64:
        return add(std::to_string(number(std::numeric_limits<std::int64_t>::min(),
                                         std::numeric_limits<std::int64_t>::max())));
      case Kind::float32: return floating<float, std::uint32_t>();
      case Kind::float64: return floating<double, std::uint64_t>();
      case Kind::bytes: return binary(type, take(length()));
      case Kind::fixed: return binary(type, take(type.size));
      case Kind::string: return string(take(length()));
      case Kind::enumeration: return add(type.names[index(type.names.size(), "an enum")]);
      case Kind::record: return record(type, level);
      case Kind::array: return blocks(type, level, '[', ']');
      case Kind::map: return blocks(type, level, '{', '}');
      case Kind::choice: return choice(type, level);
    }
  }

  void boolean() {
    const char byte = take(1)[0];
    if (byte != 0 && byte != 1) does_not_fit("a boolean is neither 0 nor 1");
    add(byte == 1 ? "true" : "false");
  }

  std::int64_t number(std::int64_t least, std::int64_t most) {
    const auto read = read_zigzag(rest_);
    if (!read || *read < least || *read > most)
      does_not_fit("an integer ends early, or is too large");
    return *read;
  }

  template <class Float, class Bits>
  void floating() {
    const std::string_view bytes = take(sizeof(Bits));
    Bits bits = 0;
    for (std::size_t i = bytes.size(); i-- > 0;)
      bits = static_cast<Bits>(bits << 8 | static_cast<unsigned char>(bytes[i]));
    const auto read = std::bit_cast<Float>(bits);
    if (std::isnan(read)) return add("\"NaN\"");
    if (std::isinf(read)) return add(read > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    std::array<char, 64> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), read).ptr;
    add({buffer.data(), end});
  }

  std::size_t length() {
    const std::int64_t read = number(0, std::numeric_limits<std::int64_t>::max());
    return static_cast<std::size_t>(read);
  }

  std::size_t index(std::size_t count, const char* what) {
    const std::size_t read = length();
    if (read >= count) does_not_fit(std::string("the index of ") + what + " is too large");
    return read;
  }

  std::string_view take(std::size_t count) {
    if (count > rest_.size()) does_not_fit("it ends early");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  void binary(const AvroType& type, std::string_view bytes) {
    add("\"");
    add(type.is_decimal ? decimal_text(bytes, type.scale) : key::base64(bytes));
    add("\"");
  }

  void string(std::string_view bytes) {
    try {
      add(nlohmann::json(bytes).dump());
    } catch (const nlohmann::json::type_error&) {
      does_not_fit("a string is not UTF-8");
    }
  }

  void record(const AvroType& type, std::size_t level) {
    add("{");
    for (std::size_t i = 0; i < type.parts.size(); ++i) {
      if (i > 0) add(",");
      add(type.names[i]);
      add(":");
      value(*type.parts[i], level + 1);
    }
    add("}");
  }

  // Blocks of elements, each with a count; a negative count is followed by the bytes of its block.
  void blocks(const AvroType& type, std::size_t level, char open, char close) {
    add({&open, 1});
    bool is_first = true;
    for (;;) {
      constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
      std::int64_t count = number(-kMost, kMost);
      if (count == 0) break;
      if (count < 0) {
        count = -count;
        length();
      }
      for (; count > 0; --count) {
        if (!std::exchange(is_first, false)) add(",");
        if (type.kind == Kind::map) {
          string(take(length()));
          add(":");
        }
        value(*type.parts[0], level + 1);
      }
    }
    add({&close, 1});
  }

  void choice(const AvroType& type, std::size_t level) {
    const AvroType& branch = *type.parts[index(type.parts.size(), "a union")];
    if (!type.is_named || branch.kind == Kind::null) return value(branch, level + 1);
    add("{");
    string(branch.name);
    add(":");
    value(branch, level + 1);
    add("}");
  }

  void add(std::string_view text) {
    if (text_.size() + text.size() > max_)
      does_not_fit("its JSON would have more than " + std::to_string(max_) + " bytes");
    text_ += text;
  }

  std::string_view rest_;
  const std::size_t max_;
  std::string text_;
};

}  // namespace

std::string AvroDecoder::decode(const Framed& framed) const {
  return Decoding(framed.body, max_text(framed.body.size())).whole(schema_.root());
}

}  // namespace hapax::payload
