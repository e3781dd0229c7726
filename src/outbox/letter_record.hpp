// Makes a record of the outbox from a dead letter. It holds the unchanged message, and after its
// own headers those that tell what became of it. docs/operating.md names the headers.
//
// Pure.
#pragma once

#include <string>

#include "store/message/publications.hpp"
#include "store/worker/outbox.hpp"

namespace hapax::outbox {

// `topic`: its destination. `store_id`: the database; ids are its own. hapax's headers come last,
// and none is missing, so a message cannot forge them. A header without a value is null.
store::Published letter_record(const store::UnpublishedLetter& letter, const std::string& topic,
                               const std::string& group, const std::string& store_id);

// A dead letter's record has no idempotency-key.
bool is_letter(const store::OutboxRow& row);
std::int64_t letter_id(const store::OutboxRow& letter);

// Removes the payload, and at the next call also the key and the message's headers. The last header
// names what is missing. False if nothing is left to remove.
bool shrink(store::OutboxRow& letter);

}  // namespace hapax::outbox
