// Copies a topic to another cluster, as MirrorMaker does.
#pragma once

#include <string>

#include "support/site.hpp"

namespace hapax::support {

// Makes the site's topic at `bootstrap`, with its records from the third of each partition on. So
// all offsets are others, as if Kafka had deleted the first two meanwhile.
// Throws: std::runtime_error in Kafka's words. Blocks: seconds.
void mirror_to(const std::string& bootstrap, const Site& site);

}  // namespace hapax::support
