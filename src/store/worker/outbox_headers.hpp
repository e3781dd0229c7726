// A record's headers as the text that hapax.outbox keeps: [[name, value], …] in their order. Null
// stays null, and a name or value that is not UTF-8 is {"hex": "…"}.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hapax::store {

using OutboxHeaders = std::vector<std::pair<std::string, std::optional<std::string>>>;

std::string outbox_headers_text(const OutboxHeaders& headers);

// Throws: std::exception if the text is no such array.
OutboxHeaders outbox_headers_of(const std::string& text);

}  // namespace hapax::store
