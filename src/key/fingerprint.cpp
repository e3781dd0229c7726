// Makes the fingerprint that tells a retry from a reused key: a digest of the payload under a rule.
// Digests of two rules cannot be compared, so each fingerprint has its rule's id.
#include <string>
#include <string_view>
#include <vector>

#include "key/canonical_json.hpp"
#include "key/document.hpp"
#include "key/identity.hpp"
#include "key/key_text.hpp"
#include "key/sha256.hpp"

namespace hapax::key {
namespace {

// The digest of a null payload, under every rule. No payload is known to have this SHA-256.
const std::string& null_digest() {
  static const std::string zeros(32, '\0');
  return zeros;
}

// Two Protobuf types with the same members, such as Placed and Cancelled, are two operations. So
// the type comes first. Canonical JSON has no line break, so no JSON equals a type with JSON.
std::string typed(std::string_view type, const std::string& canonical) {
  return type.empty() ? canonical : std::string(type) + "\n" + canonical;
}

}  // namespace

std::variant<Fingerprint, Refusal> fingerprint(const FingerprintRule& rule, Document& document) {
  const auto payload = document.message().payload();
  if (!payload) return Fingerprint{null_digest(), rule_id(rule)};
  const std::string_view type = document.message().parts().decoded_type;
  // An empty payload is not JSON. But its digest differs from that of all JSON, because no
  // canonical text is empty. The handler decides whether it can use it. In Protobuf it is the
  // message {}.
  if (rule.kind == FingerprintRule::Kind::payload || (payload->empty() && type.empty()))
    return Fingerprint{sha256(*payload), rule_id(rule)};
  const auto& parsed = document.json();
  if (const auto* error = std::get_if<NotJson>(&parsed)) return not_json(*error);
  const auto& value = std::get<nlohmann::json>(parsed);
  return Fingerprint{sha256(typed(type, canonical_json(value, rule.without))), rule_id(rule)};
}

std::variant<Fingerprint, Refusal> fingerprint(const FingerprintRule& rule,
                                               const Message& message) {
  Document document(message);
  return fingerprint(rule, document);
}

bool same_payload(const KeySpec& spec, const Message& message, const Fingerprint& mine,
                  const Fingerprint& stored) {
  using Rule = FingerprintRule;
  if (mine.rule == stored.rule) return mine == stored;
  for (const Rule& rule :
       {spec.fingerprint, Rule{Rule::Kind::payload, {}}, Rule{Rule::Kind::json, {}}}) {
    if (rule_id(rule) != stored.rule) continue;
    const auto made = fingerprint(rule, message);
    const auto* const again = std::get_if<Fingerprint>(&made);
    return again != nullptr &&
           *again == stored;  // a payload that is not JSON now differs from one that was
  }
  return true;
}

std::string rule_id(const FingerprintRule& rule) {
  switch (rule.kind) {
    case FingerprintRule::Kind::payload: return "payload";
    case FingerprintRule::Kind::json: return "json-1";
    case FingerprintRule::Kind::json_without: break;
  }
  std::vector<Part> pointers;
  for (const std::string& pointer : rule.without) pointers.push_back({Part::Type::bytes, pointer});
  return "json_without-1:" + hex(sha256(encode_parts("", pointers))).substr(0, 32);
}

}  // namespace hapax::key
