#include "outbox/letter_record.hpp"

#include <algorithm>
#include <iterator>

#include "store/worker/outbox_headers.hpp"

namespace hapax::outbox {
namespace {

constexpr const char* kId = "hapax-dead-letter-id";  // our first header
constexpr const char* kPayload = "payload";
constexpr const char* kAllButError = "payload, key, headers";

}  // namespace

store::Published letter_record(const store::UnpublishedLetter& letter, const std::string& topic,
                               const std::string& group, const std::string& store_id) {
  store::OutboxHeaders headers = letter.headers;
  const auto add = [&](const char* name, std::optional<std::string> value) {
    headers.emplace_back(name, std::move(value));
  };
  add(kId, std::to_string(letter.id));
  add("hapax-store", store_id);
  add("hapax-group", group);
  add("hapax-original-topic", letter.topic);
  add("hapax-original-partition", std::to_string(letter.partition));
  add("hapax-original-offset", std::to_string(letter.offset));
  add("hapax-original-timestamp", letter.timestamp_ms);
  add("hapax-original-timestamp-type", letter.timestamp_type);
  add("hapax-reason", letter.reason);
  add("hapax-error", letter.error);
  add("hapax-sqlstate", letter.sqlstate);
  add("hapax-attempts", letter.attempts);
  add("hapax-handler", letter.handler);
  add("hapax-handler-version", letter.handler_version);
  add("hapax-first-failed-at", letter.first_at);
  add("hapax-given-up-at", letter.created_at);
  add("hapax-left-out",
      letter.without_bytes ? std::optional<std::string>(kAllButError) : std::nullopt);
  return {topic,
          letter.record_key,
          letter.payload,
          store::outbox_headers_text(headers),
          "",
          {group, letter.topic, letter.generation, letter.partition, letter.offset}};
}

bool is_letter(const store::OutboxRow& row) { return row.idempotency_key.empty(); }

namespace {

// The message may have a header of this name, too.
auto own_headers(store::OutboxHeaders& headers) {
  const auto id = std::find_if(headers.rbegin(), headers.rend(),
                               [](const auto& header) { return header.first == kId; });
  return id == headers.rend() ? headers.end() : std::prev(id.base());
}

}  // namespace

std::int64_t letter_id(const store::OutboxRow& letter) {
  store::OutboxHeaders headers = letter.headers;
  const auto id = own_headers(headers);
  return id == headers.end() ? 0 : std::stoll(id->second.value_or("0"));
}

bool shrink(store::OutboxRow& letter) {
  const auto own = own_headers(letter.headers);
  if (own == letter.headers.end()) return false;
  std::optional<std::string>& left_out = letter.headers.back().second;
  if (left_out == kAllButError) return false;
  letter.payload.reset();
  if (!left_out) {
    left_out = kPayload;
    return true;
  }
  left_out = kAllButError;
  letter.key.reset();
  letter.headers.erase(letter.headers.begin(), own);
  return true;
}

}  // namespace hapax::outbox
