// The message behind a published record, by the headers that hapax adds to the record.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hapax/message.hpp"
#include "store/message/source.hpp"

namespace hapax::app {

// "group/topic/generation/partition/offset", as the header `hapax-origin` has it.
std::string origin_text(const store::Source& source);

// Nothing if the text is none. A group may hold slashes; a topic never does.
std::optional<store::Source> parse_origin(std::string_view text);

struct Origin {
  store::Source source;
  std::string idempotency_key;
};

// Nothing if no outbox of hapax's has sent the record. Of a header that comes twice the last
// counts, as hapax adds its own behind the handler's.
std::optional<Origin> origin_of(const Message& message);

}  // namespace hapax::app
