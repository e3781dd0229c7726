#include "flow/publisher.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "key/sha256.hpp"
#include "store/worker/outbox_headers.hpp"

namespace hapax::flow {
namespace {

// The headers by which a message's trace and its answer are found.
constexpr std::string_view kHandedOn[] = {traces::kTraceparent, traces::kTracestate,
                                          "correlation-id"};
constexpr std::string_view kOurs[] = {"idempotency-key", "hapax-origin"};

constexpr std::size_t kMostOfARecord = 128;  // lengths, timestamps, a batch's head
constexpr std::size_t kMostOfAHeader = 10;
constexpr std::size_t kOurHeaders = 1024;  // names, a digest, the origin with its topic

void append_field(std::string& text, std::string_view field) {
  for (int shift = 56; shift >= 0; shift -= 8)
    text += static_cast<char>((static_cast<std::uint64_t>(field.size()) >> shift) & 0xFFU);
  text += field;
}

bool is_text(const std::string& name) {
  try {
    (void)nlohmann::json(name).dump();
    return name.find('\0') == std::string::npos;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

void check_headers(const Outgoing& record) {
  for (const auto& [name, value] : record.headers) {
    if (!is_text(name))
      throw std::invalid_argument("publish: a header's name is not UTF-8; values may be any bytes");
    if (std::ranges::find(kOurs, name) != std::end(kOurs))
      throw std::invalid_argument("publish: hapax sets the header " + name +
                                  " itself; leave it out, and give the publish a .name");
  }
}

std::string topics_text(const Publishing& publishing) {
  std::string text;
  for (const auto& [topic, limit] : publishing.topics) text += (text.empty() ? "" : ", ") + topic;
  return text;
}

}  // namespace

std::string published_key(const std::string& scope, const key::Identity& identity,
                          std::string_view name, std::size_t ordinal) {
  std::string text;
  append_field(text, "hapax-publish-1");
  append_field(text, scope);
  append_field(text, identity.tenant);
  append_field(text, identity.key);
  append_field(text, name.empty() ? "ordinal" : "name");
  append_field(text, name.empty() ? std::to_string(ordinal) : std::string(name));
  return key::hex(key::sha256(text));
}

std::size_t published_size(const Outgoing& record) {
  std::size_t bytes = kMostOfARecord + kOurHeaders + record.key.value_or("").size();
  bytes += record.payload ? record.payload->size() : 0;
  for (const auto& [name, value] : record.headers)
    bytes += kMostOfAHeader + name.size() + (value ? value->size() : 0);
  return bytes;
}

void Publisher::publish(std::string_view topic, Outgoing record) {
  if (publishing_ == nullptr || publishing_->topics.empty())
    throw std::invalid_argument(
        "publish: this worker publishes nothing; name the topic in publish.topics of its "
        "configuration");
  const auto target = publishing_->topics.find(topic);
  if (target == publishing_->topics.end())
    throw std::invalid_argument("publish: the topic " + std::string(topic) +
                                " is not in publish.topics of the configuration; there are " +
                                topics_text(*publishing_));
  check_headers(record);
  if (names_.contains(record.name))
    throw std::invalid_argument("publish: the name \"" + record.name +
                                "\" is used twice in this run; a name is unique in its operation");
  hand_on(record);
  if (const std::size_t size = published_size(record); size > target->second)
    throw Reject("publish: the record may have " + std::to_string(size) + " bytes, and " +
                 std::string(topic) + " takes " + std::to_string(target->second) +
                 " (max.message.bytes); publish less, or raise the topic's limit and restart");
  if (!record.name.empty()) names_.insert(record.name);  // a handler may catch the Reject
  std::string key =
      published_key(scope_, identity_, record.name, record.name.empty() ? unnamed_++ : 0);
  records_.push_back({std::string(topic), std::move(record.key), std::move(record.payload),
                      store::outbox_headers_text(record.headers), std::move(key), source_});
}

// Hands on all headers of a name, in their order, unless the handler has set one. A record belongs
// to the span of the run that publishes it, if there is one.
void Publisher::hand_on(Outgoing& record) const {
  const std::size_t own = record.headers.size();
  const bool is_traced = carried_.is_own();
  for (const std::string_view name : kHandedOn) {
    const auto has_own = [&](const auto& header) { return header.first == name; };
    if (std::any_of(record.headers.begin(),
                    record.headers.begin() + static_cast<std::ptrdiff_t>(own), has_own))
      continue;
    if (is_traced && name.starts_with("trace")) {
      std::string value =
          name == traces::kTraceparent ? carried_.traceparent() : carried_.tracestate();
      if (!value.empty()) record.headers.emplace_back(name, std::move(value));
      continue;
    }
    for (const Header& header : carried_.message().headers())
      if (header.name == name)
        record.headers.emplace_back(
            header.name, header.value ? std::optional<std::string>(*header.value) : std::nullopt);
  }
}

}  // namespace hapax::flow
