// One Kafka record as a handler sees it: read-only views into memory that hapax owns.
//
// A message is immutable: whatever a handler does to its own copies, a retry, a dead letter and a
// replay always use the bytes that Kafka delivered.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hapax {

// Thrown by a handler: this message can never work, do not try again. hapax rolls the transaction
// back and keeps the message whole in hapax.dead_letters, with this text.
class Reject : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Thrown by a handler: try again later. Counts as an attempt; after `retry.max_attempts` of the
// route the message becomes a dead letter. `after` replaces the route's back-off for this attempt,
// as it is: `retry.max` does not bound it, but 365 days do; messages of the same order key wait as
// well.
class Retry : public std::runtime_error {
 public:
  explicit Retry(const std::string& why,
                 std::optional<std::chrono::milliseconds> after = std::nullopt)
      : std::runtime_error(why), after_(after) {}
  std::optional<std::chrono::milliseconds> after() const { return after_; }

 private:
  std::optional<std::chrono::milliseconds> after_;
};

// One Kafka header. Kafka allows repeated names; order is kept. A null value is not an empty one.
struct Header {
  std::string_view name;
  std::optional<std::string_view> value;
};

// Where a record stands in Kafka. Not a stable identity by itself: a topic can be made again.
struct Coordinates {
  std::string_view topic;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
};

enum class TimestampType : std::uint8_t { none, create_time, log_append_time };

// Arrays and objects in a JSON payload may nest this deep; deeper is a Reject (and the dead letter
// `not_json` where a key is derived from it): a hostile payload must not take the stack.
inline constexpr std::size_t kMaxJsonDepth = 512;

// A record. All views stay valid as long as the Message; in `handle` that is the whole call.
//
// Thread safety: immutable, so any number of threads may read it.
class Message {
 public:
  struct Parts {
    Coordinates coordinates;
    std::int32_t leader_epoch = -1;  // -1: the broker or librdkafka did not tell
    std::int64_t timestamp_ms = -1;  // milliseconds since 1970-01-01 UTC; -1: none
    TimestampType timestamp_type = TimestampType::none;
    std::optional<std::string_view> key;
    std::optional<std::string_view> payload;
    std::span<const Header> headers;
  };

  explicit Message(const Parts& parts) : parts_(parts) {}

  std::string_view topic() const { return parts_.coordinates.topic; }
  std::int32_t partition() const { return parts_.coordinates.partition; }
  std::int64_t offset() const { return parts_.coordinates.offset; }
  const Coordinates& coordinates() const { return parts_.coordinates; }
  std::int32_t leader_epoch() const { return parts_.leader_epoch; }

  // Milliseconds since the epoch as the producer (create_time) or broker (log_append_time) wrote
  // it, or nothing. Producers write what they like: it can be negative or in the future.
  std::optional<std::int64_t> timestamp_ms() const {
    if (parts_.timestamp_type == TimestampType::none) return std::nullopt;
    return parts_.timestamp_ms;
  }
  TimestampType timestamp_type() const { return parts_.timestamp_type; }

  // Kafka's record key, any bytes. Null is not empty.
  std::optional<std::string_view> key() const { return parts_.key; }

  // The payload, any bytes. Nothing for a tombstone (a null payload), which is not an empty one.
  std::optional<std::string_view> payload() const { return parts_.payload; }

  std::span<const Header> headers() const { return parts_.headers; }

  // The value of the first header of this name, compared byte for byte. Nothing where there is no
  // such header or where its value is null.
  std::optional<std::string_view> header(std::string_view name) const {
    for (const Header& header : parts_.headers)
      if (header.name == name) return header.value;
    return std::nullopt;
  }

  // The payload as JSON, with numbers as nlohmann reads them: integers beyond 64 bits, and all with
  // a fraction or an exponent, become doubles of 15 to 17 digits. Amounts that must stay exact come
  // as integers of the smallest unit, as strings, or are read from *payload() by PostgreSQL.
  // Throws: Reject where the payload is null, not JSON, or nests deeper than kMaxJsonDepth.
  nlohmann::json json() const {
    if (!parts_.payload) throw Reject("the payload is null (a tombstone), not JSON");
    if (nests_deeper_than(*parts_.payload, kMaxJsonDepth))
      throw Reject("the payload nests deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    // The parser would take a NUL between two tokens for the end of the input.
    if (parts_.payload->find('\0') != std::string_view::npos)
      throw Reject("the payload is not JSON: it holds a NUL byte");
    try {
      return nlohmann::json::parse(*parts_.payload);
    } catch (const nlohmann::json::exception& error) {
      throw Reject(std::string("the payload is not JSON: ") + error.what());
    }
  }

 private:
  // Counts brackets outside strings, without recursion.
  static bool nests_deeper_than(std::string_view text, std::size_t limit) {
    if (text.size() <= limit) return false;
    // Most texts have fewer brackets than that, which is found much faster.
    std::size_t opened = 0;
    for (const char bracket : {'{', '['})
      for (auto at = text.find(bracket); at != std::string_view::npos && opened <= limit;
           at = text.find(bracket, at + 1))
        ++opened;
    if (opened <= limit) return false;
    std::size_t depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (in_string) {
        if (c == '\\') ++i;
        if (c == '"') in_string = false;
      } else if (c == '"') {
        in_string = true;
      } else if (c == '[' || c == '{') {
        if (++depth > limit) return true;
      } else if ((c == ']' || c == '}') && depth > 0) {
        --depth;
      }
    }
    return false;
  }

  Parts parts_;
};

}  // namespace hapax
