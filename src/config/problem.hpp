// A mistake in the configuration, in words with which it can be fixed without the manual.
#pragma once

#include <string>
#include <vector>

namespace hapax::config {

struct Problem {
  std::string path;     // such as routes[0].key[1].header; "" is the file as a whole
  std::string message;  // what was found and what is allowed; never the value of a secret

  bool operator==(const Problem&) const = default;
};

// One line a problem, "path: message", each ended by a newline.
std::string format(const std::vector<Problem>& problems);

}  // namespace hapax::config
