// Hides the secrets of a configuration, because more people read logs than may know passwords.
//
// If it is unclear what is secret, it hides more: an @ in the query of a URL hides the whole URL.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hapax::config {

// Replaces a secret in a text.
inline constexpr std::string_view kHidden = "***";

// A libpq URI or conninfo string with its passwords as ***. If the text is neither, all of it is
// hidden.
// Thread safety: pure, as all here.
std::string redact_url(std::string_view url);

// Looks for a mistake by which libpq takes a part of the password for a host or a port. libpq would
// show that part in its messages. Either a character of the password is not escaped, or the host is
// missing. Nothing if the URI has no such mistake. The sentence quotes nothing of the url.
std::optional<std::string> url_mistake(std::string_view url);

// Whether librdkafka's property of this name holds a secret.
bool is_secret(std::string_view property);

// The value of librdkafka's property, or *** if it is a secret.
std::string redacted(std::string_view property, std::string_view value);

}  // namespace hapax::config
