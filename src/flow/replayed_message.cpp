#include "flow/replayed_message.hpp"

namespace hapax::flow {

using Note = store::ReplayNote;
using What = Note::What;

Message original_of(const store::ReplayedLetter& letter, std::vector<Header>& headers) {
  for (const auto& [name, value] : letter.headers) headers.push_back({name, value});
  return Message(
      {.coordinates = {letter.source.topic, letter.source.partition, letter.source.offset},
       .timestamp_ms = letter.timestamp_ms,
       .timestamp_type = letter.timestamp_type,
       .key = letter.record_key,
       .payload = letter.payload,
       .headers = headers});
}

Note unread(const payload::Reading& reading) {
  if (reading.state == payload::Reading::State::away)
    return {.what = What::put_back, .text = reading.detail, .sqlstate = {}, .wait = reading.wait};
  return {What::refused, reading.reason + ": " + reading.detail};
}

std::optional<Note> refused_message(const key::Derived& derived, const payload::Reader* reader,
                                    const Message& message) {
  if (const auto* none = std::get_if<key::Refusal>(&derived))
    return Note{What::refused, none->reason + ": " + none->detail};
  if (std::holds_alternative<key::SkippedTombstone>(derived))
    return Note{What::refused, "the route skips tombstones (a null payload)"};
  if (reader == nullptr) return std::nullopt;
  const auto violated = reader->violation(message);
  if (!violated) return std::nullopt;
  return Note{What::refused, violated->reason + ": " + violated->detail};
}

}  // namespace hapax::flow
