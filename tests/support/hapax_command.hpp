// Runs hapax's own commands for the tests, as an operator types them.
#pragma once

#include <string>
#include <vector>

#include "support/site.hpp"

namespace hapax::support {

// `hapax <arguments> -c <the site's configuration>`, as the owner of the schema where `as_owner`;
// all it printed. Throws: std::runtime_error with that where its exit code is not 0.
// Blocks: at most half a minute.
std::string hapax_command(const Site& site, std::vector<std::string> arguments,
                          bool as_owner = false);

}  // namespace hapax::support
