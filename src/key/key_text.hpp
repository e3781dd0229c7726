// How keys are stored. A key is bytes and typed; a column of PostgreSQL is text without NUL and
// with valid UTF-8 only. Two different keys never have the same stored text, because then a message
// would be lost silently. They may differ in one invalid byte, after a NUL, in the last of 10,000
// characters, or in type.
//
// - payment-17: bytes as they are, if short and printable
// - :"a\x00b" for bytes that are not printable UTF-8, are empty or begin with ':'
// - :17 :true :["a"] for a JSON number, boolean, array or object, not the bytes "17"
// - :("a:b","c",17) for several parts
// - :at("payments",0,3,42) for parts with a tag (here coordinates)
// - :sha256:5f70bf18a086… for anything longer: the hash of the text that would be here
//
// Claims, `keys show` and `explain` use the same text, so a key is typed as it is read.
// encode_key() makes the stored text of raw bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hapax::key {

// No stored key has more bytes.
inline constexpr std::size_t kMaxStoredKey = 200;

// One part of a key.
struct Part {
  enum class Type {
    bytes,  // any bytes
    json,   // canonical JSON text that is not a string
  };
  Type type = Type::bytes;
  std::string text;
};

// All are printable (valid UTF-8 without C0, DEL and C1), never empty, at most kMaxStoredKey bytes.
// Throws: std::bad_alloc, and what sha256() throws. Thread safety: pure.
std::string encode_key(std::string_view bytes);
std::string encode_part(const Part& part);
// `tag`: letters only, told apart from others and from no tag.
std::string encode_parts(std::string_view tag, std::span<const Part> parts);

}  // namespace hapax::key
