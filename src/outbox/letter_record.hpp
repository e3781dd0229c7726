// A dead letter as a record of the outbox: the message as it was, and behind its own headers what
// became of it. docs/operating.md names the headers.
//
// Pure.
#pragma once

#include <string>

#include "store/message/publications.hpp"
#include "store/worker/outbox.hpp"

namespace hapax::outbox {

// `topic`: its destination. `store_id`: the database; ids are its own. Ours come last and are all
// there, null if there is no value, so that a message cannot forge them.
store::Published letter_record(const store::UnpublishedLetter& letter, const std::string& topic,
                               const std::string& group, const std::string& store_id);

// A dead letter's record has no idempotency-key.
bool is_letter(const store::OutboxRow& row);
std::int64_t letter_id(const store::OutboxRow& letter);

// Leaves out the payload, then also the key and the message's headers, and says so in the last
// header. False if nothing is left to leave out.
bool shrink(store::OutboxRow& letter);

}  // namespace hapax::outbox
