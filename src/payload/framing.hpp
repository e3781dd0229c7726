// Reads Confluent's framings: they tell which schema wrote a payload, and at which byte its body
// begins.
//
//   payload            00 iiiiiiii …                 id, 4 bytes, the greatest first
//   payload            01 gggggggggggggggg…gggg …    GUID, 16 bytes
//   header             __value_schema_id: one of these two; the payload is then without a prefix
//
// With Protobuf the indexes of the message in its file follow the id: a count, then that many
// numbers, as zigzag varints. A count of 0 means the first message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hapax/message.hpp"

namespace hapax::payload {

struct Framed {
  std::string schema;        // path in a registry: /schemas/ids/7 or /schemas/guids/…
  std::vector<int> indexes;  // Protobuf only, never empty: of the message, from the outermost in
  std::string_view body;     // of the payload
};

struct NotFramed {
  std::string why;  // a sentence; it holds no bytes of the payload
};

// Precondition: the payload is not null. Lifetime: `body` points into the message.
// Thread safety: pure.
std::variant<Framed, NotFramed> unframe(const Message& message, bool has_indexes);

}  // namespace hapax::payload
