// A dead letter as a Kafka record: the message as it was, and beside its own headers what became
// of it. docs/operating.md names the headers.
#pragma once

#include <string>

#include "kafka/ordered_producer.hpp"
#include "store/worker/publications.hpp"

namespace hapax::worker {

// What is left out if the topic takes no larger record.
enum class LeftOut { nothing, payload, all_but_error };

// `topic`: its destination. `store_id`: the database; ids are its own. Ours come last and are all
// there, null if there is no value, so that a message cannot forge them.
kafka::OrderedRecord dead_letter_record(const store::UnpublishedLetter& letter,
                                        const std::string& topic, const std::string& group,
                                        const std::string& store_id, LeftOut left_out);

}  // namespace hapax::worker
