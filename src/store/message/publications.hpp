// Dead letters on their way into hapax.outbox, from which the relay sends them to their topics.
//
// Throws: DatabaseError (Phase::account), from all of them.
// Thread safety: none; each call uses the caller's session.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/message/dead_letter.hpp"
#include "store/message/outbox_insert.hpp"
#include "store/session.hpp"
#include "store/worker/outbox.hpp"

namespace hapax::store {

// A dead letter as its row holds it. The bytes are unchanged.
struct UnpublishedLetter {
  std::int64_t id = 0;
  std::string topic;
  std::int32_t generation = 1;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::optional<std::string> timestamp_ms;
  std::string timestamp_type;
  std::optional<std::string> record_key, payload;
  LetterHeaders headers;
  bool without_bytes = false;  // key, payload and headers were not kept
  std::string reason, error;
  std::optional<std::string> sqlstate;
  std::string attempts, handler, handler_version;
  std::string first_at, created_at;  // ISO 8601, UTC
};

inline constexpr std::size_t kMostLetters = 100;
inline constexpr std::size_t kMostLetterBytes = std::size_t{8} << 20;

// Writes the next open letters of these topics into the outbox, by id, and marks them as published.
// It takes at most `most`, and at most kMostLetterBytes of payloads, keys and headers, but at least
// one. It is one transaction, so each letter gets there once. It leaves out letters that are locked
// or whose replay has not ended. Returns how many; 0 while another process moves letters of the
// group.
// Blocks: at most `longest` for each statement.
std::size_t move_letters(Session& session, const std::string& group,
                         const std::vector<std::string>& topics, std::chrono::milliseconds longest,
                         const std::function<Published(const UnpublishedLetter&)>& record_of,
                         std::size_t most = kMostLetters);

inline constexpr std::size_t kMostCounted = 10'000;

// Counts the open letters of these topics that are not in Kafka, up to `most`. These are letters to
// be moved, and records of letters in the outbox that go to `destinations`.
// Throws: DatabaseError, 57014 if it takes longer than a second.
std::size_t count_unpublished(Session& session, const std::string& group,
                              const std::vector<std::string>& topics,
                              const std::vector<std::string>& destinations,
                              std::size_t most = kMostCounted);

}  // namespace hapax::store
