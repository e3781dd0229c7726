#include "key/identity.hpp"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "key/document.hpp"
#include "key/key_source.hpp"

namespace hapax::key {
namespace {

using Text = std::variant<std::string, Refusal>;

// `part`: "key" or "tenant", as in missing_key.
Refusal refusal(const Flawed& flawed, const std::string& part) {
  if (flawed.flaw == Flaw::not_json) return {"not_json", flawed.detail};
  const bool ambiguous = flawed.flaw == Flaw::ambiguous;
  return {(ambiguous ? "ambiguous_" : "missing_") + part, flawed.detail};
}

Refusal no_source(const std::vector<Source>& sources) {
  std::string detail = "the message has none of the key's sources:";
  for (const Source& source : sources)
    detail += (&source == sources.data() ? " " : ", ") + description(source);
  return {"missing_key", std::move(detail)};
}

// The first source with a value wins. If a source is empty, contradicts itself, or needs JSON that
// the payload is not, the search ends there. Otherwise a later source would give one operation a
// second name.
Text derive_key(const KeySpec& spec, Document& document, std::int32_t generation) {
  for (const Source& source : spec.sources) {
    auto read = read_source(source, document, generation);
    if (auto* key = std::get_if<std::string>(&read)) return std::move(*key);
    const Flawed& flawed = std::get<Flawed>(read);
    if (flawed.flaw != Flaw::absent) return refusal(flawed, "key");
  }
  if (spec.missing_key == MissingKey::reject) return no_source(spec.sources);
  const Source coordinates{Source::Kind::coordinates, {}, false};
  return std::get<std::string>(read_source(coordinates, document, generation));
}

Text derive_tenant(const KeySpec& spec, Document& document, std::int32_t generation) {
  if (!spec.tenant) return std::string();
  auto read = read_source(*spec.tenant, document, generation);
  if (auto* tenant = std::get_if<std::string>(&read)) return std::move(*tenant);
  return refusal(std::get<Flawed>(read), "tenant");
}

}  // namespace

Derived identify(const KeySpec& spec, const Message& message, std::int32_t generation) {
  if (!message.payload() && spec.tombstone == Tombstone::skip) return SkippedTombstone{};
  if (!message.payload() && spec.tombstone == Tombstone::reject)
    return Refusal{kTombstone, "the payload is null, and the route does not take tombstones"};
  return identify_also_tombstones(spec, message, generation);
}

Derived identify_also_tombstones(const KeySpec& spec, const Message& message,
                                 std::int32_t generation) {
  Document document(message);
  auto key = derive_key(spec, document, generation);
  if (auto* refused = std::get_if<Refusal>(&key)) return std::move(*refused);
  auto tenant = derive_tenant(spec, document, generation);
  if (auto* refused = std::get_if<Refusal>(&tenant)) return std::move(*refused);
  auto print = fingerprint(spec.fingerprint, document);
  if (auto* refused = std::get_if<Refusal>(&print)) return std::move(*refused);
  return Identity{std::get<std::string>(std::move(key)), std::get<std::string>(std::move(tenant)),
                  std::get<Fingerprint>(std::move(print))};
}

}  // namespace hapax::key
