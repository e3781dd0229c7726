// Messages with headers, for the tests of traces.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hapax/message.hpp"

namespace hapax::traces {

inline constexpr const char* kProducerTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
inline constexpr const char* kProducerSpan = "00f067aa0ba902b7";
inline constexpr const char* kSampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
inline constexpr const char* kNotSampled =
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

// A message that owns what it shows.
class MessageWith {
 public:
  using Headers = std::vector<std::pair<std::string, std::optional<std::string>>>;

  explicit MessageWith(std::int64_t offset = 7, Headers headers = {}) : texts_(std::move(headers)) {
    for (const auto& [name, value] : texts_) headers_.push_back({name, value});
    message_.emplace(Message::Parts{
        .coordinates = {"payments", 3, offset}, .payload = "10", .headers = headers_});
  }
  MessageWith(const MessageWith&) = delete;
  MessageWith& operator=(const MessageWith&) = delete;

  const Message& operator*() const { return *message_; }

 private:
  const Headers texts_;
  std::vector<Header> headers_;
  std::optional<Message> message_;
};

}  // namespace hapax::traces
