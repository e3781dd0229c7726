// Turns the bytes of one schema into JSON.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "payload/framing.hpp"

namespace hapax::payload {

// The bytes do not fit their schema, or the schema cannot be used. The text holds no bytes of the
// payload, but may hold names of the schema.
struct NotDecodable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// No decoded text is longer, because few bytes can stand for endless JSON.
inline std::size_t max_text(std::size_t payload_bytes) {
  constexpr std::size_t kLeast = std::size_t{16} << 20;
  constexpr std::size_t kOfASmallOne = std::size_t{64} << 10;  // a batch holds many of them
  return std::min(std::max(kLeast, 16 * payload_bytes), kOfASmallOne + 64 * payload_bytes);
}

// A schema as a registry gives it.
struct SchemaText {
  std::string type;  // AVRO, PROTOBUF or JSON
  std::string text;
  // What it refers to, each after what that refers to; `name` as the referring schema writes it.
  struct Reference {
    std::string name;
    std::string text;
    bool is_direct = false;  // the schema itself names it
  };
  std::vector<Reference> references;
};

// Thread safety: immutable.
class Decoder {
 public:
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;

  // JSON text. Memory: at most max_text(), and the stack is bounded.
  // Throws: NotDecodable; std::bad_alloc.
  virtual std::string decode(const Framed& framed) const = 0;

  // The name of the payload's type; "": the format gives it no part in what an operation is.
  // Throws: NotDecodable; std::bad_alloc.
  virtual std::string type(const Framed&) const { return {}; }
};

}  // namespace hapax::payload
