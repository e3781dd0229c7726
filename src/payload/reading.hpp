// What came of decoding one payload.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "hapax/message.hpp"

namespace hapax::payload {

// The reason of a message that waits for its schema.
inline constexpr const char* kRegistry = "registry";

struct Reading {
  enum class State {
    readable,    // `json` is the decoded payload
    unreadable,  // a dead letter: `reason` is a fixed word, `detail` a sentence for people
    away,        // the registry is away, or does not know the schema yet: again after `wait`
  };
  State state = State::readable;
  std::string json = {};
  std::string type = {};  // as Decoder::type()
  std::string reason = {};
  std::string detail = {};
  std::chrono::milliseconds wait{0};

  bool is_readable() const { return state == State::readable; }
};

// A message with its decoded payload. `original` must outlive it; what it shows must not move.
struct ReadMessage {
  ReadMessage(const Message& original, Reading made)
      : reading(std::move(made)), message(with_json(original, reading)) {}
  ReadMessage(const ReadMessage&) = delete;
  ReadMessage& operator=(const ReadMessage&) = delete;

  const Reading reading;
  const Message message;

 private:
  static Message with_json(const Message& original, const Reading& reading) {
    Message::Parts parts = original.parts();
    if (reading.is_readable() && parts.payload) {
      parts.decoded = reading.json;
      parts.decoded_type = reading.type;
    }
    return Message(parts);
  }
};

}  // namespace hapax::payload
