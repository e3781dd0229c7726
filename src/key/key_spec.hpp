// Decides the identity of a route's messages: the sources of the idempotency key, the tenant and
// the fingerprint. Plain values, read from the configuration.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace hapax::key {

// One source of a key. A source with several names is a composite: it needs all of them.
struct Source {
  enum class Kind {
    header,        // names: header names, compared without regard to case
    json,          // names: JSON pointers (RFC 6901) into the payload
    record_key,    // Kafka's record key
    coordinates,   // topic, the log's number (worker/log_number.hpp), partition, offset
    content_hash,  // SHA-256 of the payload bytes
    position,      // alone: named by coordinates, and remembered by partition (hapax.positions)
  };
  Kind kind = Kind::header;
  std::vector<std::string> names;
  bool unquote = false;  // header: remove the quotes of a structured-field string ("8e03" → 8e03)

  bool operator==(const Source&) const = default;
};

enum class MissingKey { reject, coordinates };
enum class Tombstone { reject, skip, handle };

// How a retry is told from a reused key.
struct FingerprintRule {
  enum class Kind { payload, json, json_without };
  Kind kind = Kind::payload;
  std::vector<std::string> without;  // json_without: JSON pointers left out, sorted, unique

  bool operator==(const FingerprintRule&) const = default;
};

struct KeySpec {
  std::string scope;
  std::vector<Source> sources;   // the first one with a value wins
  std::optional<Source> tenant;  // nothing: the tenant is ''
  MissingKey missing_key = MissingKey::reject;
  Tombstone tombstone = Tombstone::reject;
  FingerprintRule fingerprint;
  std::string format;  // payload.format: JSON pointers read what it decodes; "": the payload
};

// Whether PostgreSQL remembers offsets, and no keys.
inline bool is_by_position(const KeySpec& spec) {
  return !spec.sources.empty() && spec.sources.front().kind == Source::Kind::position;
}

// Whether a key may be made of coordinates, so that it names a log and not an operation.
inline bool may_be_coordinates(const KeySpec& spec) {
  return spec.missing_key == MissingKey::coordinates || is_by_position(spec) ||
         std::ranges::find(spec.sources, Source::Kind::coordinates, &Source::kind) !=
             spec.sources.end();
}

}  // namespace hapax::key
