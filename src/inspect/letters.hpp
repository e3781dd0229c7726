// Dead letters as people ask for them: by a filter, by an id or coordinates.
#pragma once

#include <string>
#include <vector>

#include "cli/output.hpp"
#include "store/operator/dead_letter_orders.hpp"
#include "store/operator/inspect.hpp"
#include "store/session.hpp"

namespace hapax::app {

// What chooses letters; all that are set must fit.
struct LetterFilter {
  std::vector<std::string> which;  // ids or TOPIC/PARTITION/OFFSET
  store::OptionalText topic, handler, reason, error, key, scope, tenant;
  std::string since, until;  // durations
};
bool is_empty(const LetterFilter& filter);

// The filter without its ids. Throws: Stop(kUsage) if a duration is none.
store::DeadLetterFilter list_filter(const LetterFilter& filter, const std::string& group);

// One page newest first. A key is tried as it is stored, then as the producer sends it.
store::Listed list_letters(store::Session& session, store::DeadLetterFilter& filter);

// The open letters that an order means: all that fit, or of `ids` those that fit. A key is taken as
// list_letters() takes it, and then stands for one operation: several tenants may use the same key.
// Throws: Stop(kUsage) if letters of the key are of several scopes or tenants, and no ids are
// named.
store::OpenLetters letters_to_order(store::Session& session, const store::DeadLetterFilter& filter,
                                    store::LetterIds ids = {}, bool skipped = false);

// The id for the page behind `listed`; null if there is none.
Json next_page(const store::Listed& listed, int limit);

// The letter of an id or TOPIC/PARTITION/OFFSET, bytes as hex.
// Throws: Stop(kUsage); Stop(kFailed) if there is none, telling which there is.
Json read_letter(store::Session& session, const std::string& group, const std::string& which);

// Whether the letter has its message's key, payload and headers: not if they were more than
// PostgreSQL takes. As sql/operator/lock_open_dead_letters.sql.
bool has_bytes(const Json& letter);

// The letter as `show --json` and `export` print it.
Json letter_json(Json letter);

}  // namespace hapax::app
