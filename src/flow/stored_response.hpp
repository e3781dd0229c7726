// An HTTP answer as it is stored with a key: a JSON object with the one member `hapax:response`,
// which no result of Context::result has.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hapax/context.hpp"

namespace hapax::flow {

// Throws: std::invalid_argument, as Context::respond.
void check(const Response& response);

// Whether a retry gets the header, too. Upper and lower case are one.
bool is_replayed(std::string_view header);

// A body that is UTF-8 is stored as text, another one in hex. Precondition: check().
std::string stored_text(const Response& response);

// Whether the text is what stored_text() made, or claims to be.
bool is_stored_response(const std::string& json);

// Nothing if the text is not what stored_text() makes.
std::optional<Response> response_of(const std::string& json);

// The path of an accepted request's operation begins so (docs/gate.md).
inline constexpr std::string_view kOperations = "/operations/";

// Whether a gate has accepted a request with it.
bool is_acceptance(const Response& response);

// The HTTP answer of a key's result: what respond() gave, or the value of result(), or 204.
Response answer_of(const std::optional<std::string>& result);

}  // namespace hapax::flow
