// The words of a request: of the query of a look, and of the body of an order.
//
// Throws: app::Stop(kUsage) with a sentence that names the word. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "inspect/letters.hpp"
#include "observe/page_server.hpp"
#include "store/operator/dead_letter_orders.hpp"

namespace hapax::console {

// Nothing if it is not there, or empty.
store::OptionalText text_of(const observe::PageRequest& request, const std::string& name);
std::optional<std::int64_t> number_of(const observe::PageRequest& request, const std::string& name);

// topic, handler, reason, error, key, since, until.
app::LetterFilter filter_of(const observe::PageRequest& request);

// The body of an order: an object of JSON that nests at most kMaxJsonDepth levels.
app::Json body_of(const observe::PageRequest& request);
// The text under `name`, not empty. A message is text, too, in any alphabet.
std::string need_text(const app::Json& body, const char* name);
// As need_text(), in one line: who and why of an order.
std::string need_line(const app::Json& body, const char* name);
// The text under `name`; "" if it is not there.
std::string text_in(const app::Json& body, const char* name);
store::LetterIds need_ids(const app::Json& body, const char* name);
bool is_dry_run(const app::Json& body);

}  // namespace hapax::console
