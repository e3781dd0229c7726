// What may be shown of a configuration: everything but its secrets. Logs travel further than
// passwords may.
//
// When in doubt, too much is hidden: an @ in the query of a URL hides all of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hapax::config {

// Replaces a secret in a text.
inline constexpr std::string_view kHidden = "***";

// A libpq URI or conninfo string with its passwords as ***; what is neither is hidden whole.
// Thread safety: pure, as all here.
std::string redact_url(std::string_view url);

// What is wrong with a URI in which libpq would take a part of the password for a host or a port,
// and show it in its messages. Either a character in it was not escaped, or the host was forgotten.
// Nothing if the URI has no such mistake. The sentence holds nothing of the url.
std::optional<std::string> url_mistake(std::string_view url);

// Whether librdkafka's property of this name holds a secret.
bool is_secret(std::string_view property);

// The value of librdkafka's property as it may be shown.
std::string redacted(std::string_view property, std::string_view value);

}  // namespace hapax::config
