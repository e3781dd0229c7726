// The message of a dead letter that is replayed, and why it cannot run as it is.
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

// What to note if its payload could not be decoded.
store::ReplayNote unread(const payload::Reading& reading);

// What to note if it has no key, or violates the route's schema. `reader`: null, if it is not to be
// checked.
std::optional<store::ReplayNote> refused_message(const key::Derived& derived,
                                                 const payload::Reader* reader,
                                                 const Message& message);

}  // namespace hapax::flow
