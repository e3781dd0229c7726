#include "payload/avro.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "payload/json_text.hpp"
#include "payload/varint.hpp"

namespace hapax::payload {
namespace {

using Kind = AvroType::Kind;

constexpr std::size_t kMaxLevels = 2 * kMaxJsonDepth;  // a union is a level without a bracket
constexpr std::size_t kMaxDecimal = 128;               // bytes: 308 digits

constexpr const char* kNoFit = "the payload does not fit its Avro schema: ";

[[noreturn]] void does_not_fit(const std::string& why) { throw NotDecodable(kNoFit + why); }

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
  Decoding(std::string_view bytes, std::size_t max) : rest_(bytes), json_(max, kNoFit) {}

  std::string whole(const AvroType& type) {
    value(type, 0);
    if (!rest_.empty()) does_not_fit(std::to_string(rest_.size()) + " bytes are left over");
    return json_.take();
  }

 private:
  void value(const AvroType& type, std::size_t level) {
    if (level > kMaxLevels) does_not_fit("it nests too deep");
    switch (type.kind) {
      case Kind::null: return json_.add("null");
      case Kind::boolean: return boolean();
      case Kind::int32:
        return json_.number(number(std::numeric_limits<std::int32_t>::min(),
                                   std::numeric_limits<std::int32_t>::max()));
      case Kind::int64:
        return json_.number(number(std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int64_t>::max()));
      case Kind::float32: return floating<float, std::uint32_t>();
      case Kind::float64: return floating<double, std::uint64_t>();
      case Kind::bytes: return binary(type, take(length()));
      case Kind::fixed: return binary(type, take(type.size));
      case Kind::string: return json_.string(take(length()));
      case Kind::enumeration: return json_.add(type.names[index(type.names.size(), "an enum")]);
      case Kind::record: return record(type, level);
      case Kind::array: return blocks(type, level, '[', ']');
      case Kind::map: return blocks(type, level, '{', '}');
      case Kind::choice: return choice(type, level);
    }
  }

  void boolean() {
    const char byte = take(1)[0];
    if (byte != 0 && byte != 1) does_not_fit("a boolean is neither 0 nor 1");
    json_.add(byte == 1 ? "true" : "false");
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
    json_.number(std::bit_cast<Float>(bits));
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
    if (!type.is_decimal) return json_.base64(bytes);
    json_.add("\"");
    json_.add(decimal_text(bytes, type.scale));
    json_.add("\"");
  }

  void record(const AvroType& type, std::size_t level) {
    json_.add("{");
    for (std::size_t i = 0; i < type.parts.size(); ++i) {
      if (i > 0) json_.add(",");
      json_.add(type.names[i]);
      json_.add(":");
      value(*type.parts[i], level + 1);
    }
    json_.add("}");
  }

  // Blocks of elements, each with a count; a negative count is followed by the bytes of its block.
  void blocks(const AvroType& type, std::size_t level, char open, char close) {
    json_.add({&open, 1});
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
        if (!std::exchange(is_first, false)) json_.add(",");
        if (type.kind == Kind::map) {
          json_.string(take(length()));
          json_.add(":");
        }
        value(*type.parts[0], level + 1);
      }
    }
    json_.add({&close, 1});
  }

  void choice(const AvroType& type, std::size_t level) {
    const AvroType& branch = *type.parts[index(type.parts.size(), "a union")];
    if (!type.is_named || branch.kind == Kind::null) return value(branch, level + 1);
    json_.add("{");
    json_.string(branch.name);
    json_.add(":");
    value(branch, level + 1);
    json_.add("}");
  }

  std::string_view rest_;
  JsonText json_;
};

}  // namespace

// Confluent's serializer for Java writes such a value without its length, and others write it with
// one. A value without may begin with bytes that look like its length.
AvroDecoder::AvroDecoder(const SchemaText& schema) : schema_(schema) {
  if (schema_.root().kind == Kind::bytes)
    throw NotDecodable(
        "the schema is `bytes` and nothing else, which serializers write in two ways; put the "
        "bytes into a record");
}

std::string AvroDecoder::decode(const Framed& framed) const {
  return Decoding(framed.body, max_text(framed.body.size())).whole(schema_.root());
}

}  // namespace hapax::payload
