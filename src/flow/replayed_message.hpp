// Makes the message of a dead letter that is replayed, or tells why it cannot run as it is.
//
// Pure.
#pragma once

#include <optional>
#include <vector>

#include "hapax/message.hpp"
#include "key/identity.hpp"
#include "payload/reader.hpp"
#include "store/message/replays.hpp"

namespace hapax::flow {

// A view of the letter and of `headers`, which it fills.
Message original_of(const store::ReplayedLetter& letter, std::vector<Header>& headers);

// The note for a payload that could not be decoded.
store::ReplayNote unread(const payload::Reading& reading);

// The note for a message without a key, or one that violates the route's schema. `reader`: null if
// the schema is not to be checked.
std::optional<store::ReplayNote> refused_message(const key::Derived& derived,
                                                 const payload::Reader* reader,
                                                 const Message& message);

}  // namespace hapax::flow
