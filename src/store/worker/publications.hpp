// Which dead letters are in their Kafka topic, and which are not yet.
//
// Each call is a short transaction of its own. Throws: DatabaseError (Phase::account).
// Thread safety: none; each call uses the caller's session.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/session.hpp"

namespace hapax::store {

// A dead letter as its row has it; bytes as they came.
struct UnpublishedLetter {
  std::int64_t id = 0;
  std::string topic;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::optional<std::string> timestamp_ms;
  std::string timestamp_type;
  std::optional<std::string> record_key, payload;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  std::string reason, error;
  std::optional<std::string> sqlstate;
  std::string attempts, handler, handler_version;
  std::string first_at, created_at;  // ISO 8601, UTC
};

// False on a schema older than 6.
bool has_publications(Session& session);

// The next open letters of a group's topics that are not published, by id. Returns at most
// kMostLetters of them and a bounded number of bytes of payloads, but always one.
std::vector<UnpublishedLetter> read_unpublished(Session& session, const std::string& group,
                                                const std::vector<std::string>& topics);
inline constexpr std::size_t kMostLetters = 100;
inline constexpr std::size_t kMostPayload = std::size_t{8} << 20;

// How many there are, counted up to kMostCounted.
std::size_t count_unpublished(Session& session, const std::string& group,
                              const std::vector<std::string>& topics);
inline constexpr std::size_t kMostCounted = 10'000;

void mark_published(Session& session, const std::vector<std::int64_t>& letters);

}  // namespace hapax::store
