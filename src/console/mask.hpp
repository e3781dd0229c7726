// What console.mask hides: values inside JSON, also inside the body of an answer that a handler
// gave. The page gets the rest as hapax writes it, not as the producer did. So no spelling, such as
// an escaped name, carries a hidden value there.
//
// Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cli/output.hpp"

namespace hapax::console {

inline constexpr const char* kMasked = "(masked)";  // stands for each hidden value

struct Masked {
  bool hides = false;  // something of the bytes
  std::optional<std::string>
      rest;  // canonical JSON; nothing: it is no JSON, and all of it is hidden
};

// `mask`: config::Console::mask. Without one nothing is hidden, and nothing is parsed.
Masked masked(std::span<const std::string> mask, const std::optional<std::string>& bytes);

// As shown_bytes() of a payload; {"bytes", "masked": true} and what is left as "text", if any is,
// if `mask` hides something of it.
app::Json shown_payload(std::span<const std::string> mask, const std::optional<std::string>& bytes);

// Hides within the JSON text under `name`, such as a result. null stays null. Sets
// "<name>_masked" if something is hidden; the text of what is no JSON is kMasked.
void mask_member(std::span<const std::string> mask, app::Json& row, const char* name);

}  // namespace hapax::console
