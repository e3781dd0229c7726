// If a worker's digest differs from the last owner's, it would name the same operations differently
// and run them again. So it is refused (guarantees: the checkpoint row's key_spec).
#include <algorithm>
#include <string_view>
#include <vector>

#include "key/identity.hpp"
#include "key/key_source.hpp"
#include "key/sha256.hpp"

namespace hapax::key {
namespace {

// Raise it when the same spec starts to give other keys.
constexpr std::string_view kVersion = "1";

std::string_view word(Source::Kind kind) {
  switch (kind) {
    case Source::Kind::header: return "header";
    case Source::Kind::json: return "json";
    case Source::Kind::record_key: return "record_key";
    case Source::Kind::coordinates: return "coordinates";
    case Source::Kind::position: return "position";
    case Source::Kind::content_hash: break;
  }
  return "content_hash";
}

std::string_view word(MissingKey policy) {
  return policy == MissingKey::reject ? "reject" : "coordinates";
}

std::string_view word(Tombstone policy) {
  switch (policy) {
    case Tombstone::reject: return "reject";
    case Tombstone::skip: return "skip";
    case Tombstone::handle: break;
  }
  return "handle";
}

// A list of words that no other list gives.
std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& entry : words) text += std::to_string(entry.size()) + ':' + entry;
  return text;
}

std::string described(const Source& source) {
  std::vector<std::string> words{std::string(word(source.kind)), source.unquote ? "unquote" : ""};
  for (std::string name : source.names) {
    if (source.kind == Source::Kind::header)
      std::transform(name.begin(), name.end(), name.begin(), lower_case);
    words.push_back(std::move(name));
  }
  return list(words);
}

}  // namespace

std::string spec_digest(const KeySpec& spec) {
  std::vector<std::string> words{
      std::string(kVersion), spec.scope, std::string(word(spec.missing_key)),
      std::string(word(spec.tombstone)), spec.tenant ? described(*spec.tenant) : ""};
  for (const Source& source : spec.sources) words.push_back(described(source));
  if (!spec.format.empty()) words.push_back("format " + spec.format);
  return hex(sha256(list(words)));
}

}  // namespace hapax::key
