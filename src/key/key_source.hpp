// Reads one source of a key (or tenant) out of a message: the stored text, or why there is none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "key/document.hpp"
#include "key/key_spec.hpp"

namespace hapax::key {

// In the order in which they count if the parts of a composite differ. A source with a missing part
// is absent, even if other parts are there. But a part that contradicts itself is never passed
// over.
enum class Flaw {
  empty,      // there, and empty: a broken producer, not an absent key; no other source may step in
  absent,     // not there, or null
  ambiguous,  // a header that came more than once, with different values
  not_json,   // needs JSON, and the payload is none
};

struct Flawed {
  Flaw flaw;
  std::string detail;  // a sentence for people
};

// Empty are "", [] and {} (each would be one key for many messages), an empty record key and, for
// content_hash, an empty payload. In a null payload every JSON pointer is absent: a tombstone can
// still be named by its record key.
// Thread safety: pure.
std::variant<std::string, Flawed> read_source(const Source& source, Document& document,
                                              std::int32_t generation);

// ASCII only, in every locale: two workers must agree on which header is meant.
char lower_case(char letter);

// The content of a structured-field string (RFC 8941, 3.3.3); nothing if it is not one as a whole.
std::optional<std::string> unquoted(std::string_view value);

// Such as "header 'ce_source' and 'ce_id'", for messages.
std::string description(const Source& source);

}  // namespace hapax::key
