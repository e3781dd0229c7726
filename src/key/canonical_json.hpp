// One text for all spellings of a JSON document, so that its SHA-256 tells a retry from a reused
// key. Different programs may write the same document; it always has the same bytes here.
//
// - Members are sorted bytewise by their UTF-8 names. There is no white space.
// - Numbers are written by exact decimal value (exact_number.hpp).
// - In strings `"` and `\` are escaped. Control characters are \b \t \n \f \r or \u00xx (C0, DEL
// and
//   C1, so that the text is printable). All else is UTF-8 as it is.
// - Nothing is normalised: é as one code point and as two are two texts.
//
// Not RFC 8785, which reads numbers as doubles and so makes 2^53 and 2^53 + 1 one document.
// A change of this form is a new rule id (identity.hpp), or every retry would look like a drift.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace hapax::key {

// `exact`: from parse_exact(). `without`: JSON pointers to what is left out, be it there or not. A
// left-out array element closes up; indexes are those of the whole array, so /0 and /1 together
// leave out the first two. "" (the whole document) leaves out nothing: a fingerprint of nothing
// would call every reused key a retry.
// Throws: std::bad_alloc. Recursion is bounded by kMaxJsonDepth.
// Thread safety: pure.
std::string canonical_json(const nlohmann::json& exact, std::span<const std::string> without = {});

}  // namespace hapax::key
