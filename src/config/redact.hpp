// What may be shown of a configuration: everything but its secrets. Logs travel further than
// passwords may.
//
// When in doubt, too much is hidden: an @ in the query of a URL hides what stands before it.
#pragma once

#include <string>
#include <string_view>

namespace hapax::config {

// Stands where a secret was.
inline constexpr std::string_view kHidden = "***";

// A libpq URI or conninfo string with its passwords as ***; what is neither is hidden whole.
// Thread safety: pure, as all here.
std::string redact_url(std::string_view url);

// Whether librdkafka's property of this name holds a secret.
bool is_secret(std::string_view property);

// The value of librdkafka's property as it may be shown.
std::string redacted(std::string_view property, std::string_view value);

}  // namespace hapax::config
