// Derives the names of a message: idempotency key, tenant, fingerprint.
//
// Pure: no clock, no database, no Kafka. The same bytes give the same identity on every machine
// and in every release. A change here is a change of the key spec (guarantees: A2).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "hapax/message.hpp"
#include "key/key_spec.hpp"

namespace hapax::key {

struct Fingerprint {
  std::string digest;  // 32 bytes, SHA-256
  std::string rule;    // id of the rule that made it, such as "payload" or "json-1"
  bool operator==(const Fingerprint&) const = default;
};

struct Identity {
  std::string key;     // as stored: printable, at most kMaxStoredKey bytes (key_text.hpp)
  std::string tenant;  // as stored; "" if the route has no tenant
  Fingerprint fingerprint;
};

// Why a message has no identity. `reason` is a fixed word (missing_key, ambiguous_key,
// missing_tenant, ambiguous_tenant, not_json, tombstone), `detail` a sentence for people.
struct Refusal {
  std::string reason;
  std::string detail;
};

inline constexpr const char* kTombstone = "tombstone";

// The message is a tombstone and the route skips tombstones.
struct SkippedTombstone {};

using Derived = std::variant<Identity, Refusal, SkippedTombstone>;

// `generation`: how often the topic was accepted as re-created; part of a coordinates key.
// Throws: std::bad_alloc, and std::runtime_error if OpenSSL has no SHA-256 (a broken
// installation). A mistake in the message is a Refusal.
// Thread safety: pure.
Derived identify(const KeySpec& spec, const Message& message, std::int32_t generation);

// The same, but names tombstones, even if the route skips or rejects them.
Derived identify_also_tombstones(const KeySpec& spec, const Message& message,
                                 std::int32_t generation);

// Only the fingerprint, for a row that an older configuration wrote. Pick the rule whose rule_id()
// is the stored one ("payload", "json-1", or the route's own). A null payload, an empty one and
// `""` have three fingerprints under every rule. Throws: as identify(). Thread safety: pure.
std::variant<Fingerprint, Refusal> fingerprint(const FingerprintRule& rule, const Message& message);

// Whether the message has the payload of which `stored` was made. Fingerprints of two rules are
// compared under the stored rule if this spec knows it. If it does not, drift cannot be detected
// and the key decides: true. `mine`: the message's own. Throws: as identify(). Thread safety: pure.
bool same_payload(const KeySpec& spec, const Message& message, const Fingerprint& mine,
                  const Fingerprint& stored);

// Stored beside each fingerprint; fingerprints are compared only within one id. It is "payload",
// "json-1", or "json_without-1:" and 32 hex digits of a digest of the pointers in their order. So
// `without` must be sorted and unique, as FingerprintRule demands.
// Throws: as identify(). Thread safety: pure.
std::string rule_id(const FingerprintRule& rule);

// A digest (hex SHA-256) of all that decides identity: sources, tenant, scope, missing key and
// tombstone policy. The fingerprint's rule is not part of it, because it is stored with each key.
std::string spec_digest(const KeySpec& spec);

}  // namespace hapax::key
