// A message while its identity is derived. Its payload is parsed as JSON at most once, and only if
// something asks for it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "hapax/message.hpp"
#include "key/exact_json.hpp"
#include "key/identity.hpp"

namespace hapax::key {

// Owner: the thread that made it. The message must outlive it.
class Document {
 public:
  explicit Document(const Message& message) : message_(message) {}

  const Message& message() const { return message_; }

  // Precondition: the payload is not null.
  const std::variant<nlohmann::json, NotJson>& json() {
    if (!parsed_) parsed_ = parse_exact(*message_.json_text());
    return *parsed_;
  }

 private:
  const Message& message_;
  std::optional<std::variant<nlohmann::json, NotJson>> parsed_;
};

inline Refusal not_json(const NotJson& error) {
  return {"not_json", "the payload is not JSON that a key can be taken from: " + error.why};
}

std::variant<Fingerprint, Refusal> fingerprint(const FingerprintRule& rule, Document& document);

}  // namespace hapax::key
