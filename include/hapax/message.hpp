// One Kafka record as a handler sees it: read-only views into memory that hapax owns.
//
// A message is immutable. If a handler changes its own copies, a retry, a dead letter and a replay
// use the bytes that Kafka delivered all the same. Nothing here blocks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "hapax/errors.hpp"
#include "hapax/typed.hpp"

namespace hapax {

// One Kafka header. Kafka allows repeated names and keeps their order. A null value is not an empty
// one.
struct Header {
  std::string_view name;
  std::optional<std::string_view> value;
};

// The place of a record in Kafka. It is no stable identity: a topic can be deleted and made again.
// In a gate the topic is the route's path, the partition 0, and the offset a number for this run.
struct Coordinates {
  std::string_view topic;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
};

// Who wrote the timestamp: the producer (create_time) or the broker (log_append_time). none: the
// record has no timestamp.
enum class TimestampType : std::uint8_t { none, create_time, log_append_time };

// Arrays and objects in a JSON payload may nest this deep (levels). A deeper payload is a
// BadPayload, because a hostile payload must not exhaust the stack. If the key is derived from it,
// the message becomes a dead letter, `not_json`.
inline constexpr std::size_t kMaxJsonDepth = 512;

// A record. All views are valid as long as hapax keeps the bytes: in a handler until its function
// returns. Copy what must live longer.
//
// Thread safety: immutable, so any number of threads may read it.
class Message {
 public:
  struct Parts {
    Coordinates coordinates;
    std::int32_t leader_epoch = -1;  // -1: unknown to the broker or to librdkafka
    std::int64_t timestamp_ms = -1;  // milliseconds since 1970-01-01 UTC; -1: none
    TimestampType timestamp_type = TimestampType::none;
    std::optional<std::string_view> key;
    std::optional<std::string_view> payload;
    std::span<const Header> headers;
    std::optional<std::string_view> decoded = {};  // what payload.format makes of the payload: JSON
    std::string_view decoded_type = {};            // of Protobuf: the message's full name; else ""
  };

  explicit Message(const Parts& parts) : parts_(parts) {}

  std::string_view topic() const { return parts_.coordinates.topic; }
  std::int32_t partition() const { return parts_.coordinates.partition; }
  std::int64_t offset() const { return parts_.coordinates.offset; }
  const Coordinates& coordinates() const { return parts_.coordinates; }
  std::int32_t leader_epoch() const { return parts_.leader_epoch; }

  // UTC, to the millisecond, written by the producer (create_time) or by the broker
  // (log_append_time). Nothing if the record has none. A producer may write any number: it can be
  // before 1970 or in the future.
  std::optional<std::chrono::sys_time<std::chrono::milliseconds>> timestamp() const {
    if (parts_.timestamp_type == TimestampType::none) return std::nullopt;
    return std::chrono::sys_time<std::chrono::milliseconds>(
        std::chrono::milliseconds(parts_.timestamp_ms));
  }
  TimestampType timestamp_type() const { return parts_.timestamp_type; }

  // Kafka's record key, any bytes. Nothing for a null key, which is not an empty one.
  std::optional<std::string_view> key() const { return parts_.key; }

  // The payload, any bytes. Nothing for a tombstone (a null payload), which is not an empty one.
  std::optional<std::string_view> payload() const { return parts_.payload; }

  std::span<const Header> headers() const { return parts_.headers; }

  const Parts& parts() const { return parts_; }

  // The text that json() reads: on a route with payload.format the decoded payload, else the
  // payload itself. Nothing for a tombstone.
  std::optional<std::string_view> json_text() const {
    return parts_.decoded ? parts_.decoded : parts_.payload;
  }

  // The value of the first header with this name, compared byte for byte. Nothing if there is no
  // such header, or if its value is null.
  std::optional<std::string_view> header(std::string_view name) const {
    for (const Header& header : parts_.headers)
      if (header.name == name) return header.value;
    return std::nullopt;
  }

  // The payload, decoded if the route has a payload.format, as JSON, with numbers as nlohmann reads
  // them. Integers beyond 64 bits, and numbers with a fraction or an exponent, become doubles of 15
  // to 17 digits. If an amount must stay exact, send it as an integer of the smallest unit or as a
  // string, or let PostgreSQL read *payload(). Each call parses again. Throws: BadPayload if the
  // payload is null, is not JSON, or nests deeper than kMaxJsonDepth.
  [[gnu::visibility("hidden")]] nlohmann::json json() const {
    const std::optional<std::string_view> text = json_text();
    if (!text) throw BadPayload("the payload is null (a tombstone), not JSON");
    if (nests_deeper_than(*text, kMaxJsonDepth))
      throw BadPayload("the payload nests deeper than " + std::to_string(kMaxJsonDepth) +
                       " levels");
    // The parser would take a NUL between two tokens for the end of the input.
    if (text->find('\0') != std::string_view::npos)
      throw BadPayload("the payload is not JSON: it holds a NUL byte");
    try {
      return nlohmann::json::parse(*text);
    } catch (const nlohmann::json::exception& error) {
      throw BadPayload(std::string("the payload is not JSON: ") + error.what());
    }
  }

  // The payload as a T, by T's from_json. NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Payment, id, amount)
  // writes one for a struct, with a to_json.
  // Throws: BadPayload as json() does, and if a member is missing or of another type. If T has a
  //   to_json, also if a member cannot hold its number, such as 12.7 for an integer. The text names
  //   the member's place (JSON pointer), for which T's from_json is called again and again. Above
  //   1 MiB, and in maps of thousands, it may name none, because that takes too long. Also what
  //   else T's from_json throws.
  // An enum of NLOHMANN_JSON_SERIALIZE_ENUM takes each text that its list lacks for the first entry
  // of the list. So begin the list with an entry for these, and reject it.
  template <class T>
  [[gnu::visibility("hidden")]] T as() const {
    static_assert(
        requires(const nlohmann::json& value) { value.template get<T>(); },
        "message.as<T>() needs NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(T, member…) below T, with a "
        "default constructor and members that JSON can hold; or a from_json for T");
    const nlohmann::json document = json();
    try {
      T read = document.get<T>();
      if constexpr (std::is_constructible_v<nlohmann::json, const T&>)
        if (const auto changed = detail::changed_number(document, nlohmann::json(read)))
          throw BadPayload("the payload does not fit: " + *changed);
      return read;
    } catch (const nlohmann::json::exception& error) {
      const auto read_again = [](const nlohmann::json& changed) -> std::string {
        try {
          (void)changed.get<T>();
        } catch (const nlohmann::json::exception& other) {
          return other.what();
        } catch (const std::exception&) {  // T's own
        }
        return {};
      };
      constexpr std::size_t most_bytes = 32 << 20;  // that are read again: at most some 0.2 s
      std::string place =
          detail::FailedPlace(document, error.what(), most_bytes / json_text()->size(), read_again)
              .find();
      if (!place.empty()) place = " at \"" + place + "\"";
      throw BadPayload("the payload does not fit" + place + ": " + error.what());
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
