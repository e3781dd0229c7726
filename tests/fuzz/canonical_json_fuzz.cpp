// Payloads are hostile. What parse_exact() takes has one canonical form, which is JSON again and
// its own canonical form; and it takes nothing that Message::json() would refuse.
#include <variant>

#include "fuzz.hpp"
#include "hapax/message.hpp"
#include "key/canonical_json.hpp"
#include "key/exact_json.hpp"

using namespace hapax;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = fuzz::text_of(data, size);
  const auto parsed = key::parse_exact(text);
  if (std::holds_alternative<key::NotJson>(parsed)) return 0;
  const std::string canonical = key::canonical_json(std::get<nlohmann::json>(parsed));
  const auto again = key::parse_exact(canonical);
  fuzz::require(std::holds_alternative<nlohmann::json>(again), "the canonical form is not JSON");
  fuzz::require(key::canonical_json(std::get<nlohmann::json>(again)) == canonical,
                "the canonical form has another canonical form");
  Message::Parts parts;
  parts.payload = text;
  try {
    (void)Message(parts).json();
  } catch (const Reject&) {
    fuzz::require(false, "a key is derived of what a handler cannot read");
  }
  return 0;
}
