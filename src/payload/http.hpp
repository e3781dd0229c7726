// HTTP questions to a schema registry, by libcurl.
#pragma once

#include <functional>
#include <string>

#include "config/config.hpp"

namespace hapax::payload {

struct HttpAnswer {
  long status = 0;
  std::string body;
};

// GET of a path below the registry's URL.
// Throws: std::runtime_error, if no whole answer came: why. Blocks: at most 3 s.
using HttpGet = std::function<HttpAnswer(const std::string& path)>;

// Thread safety: what it returns may be called by any thread; calls share nothing.
// Throws: std::runtime_error if libcurl cannot start.
HttpGet http_get(const config::Registry& registry);

// A segment of a path.
std::string url_escape(const std::string& text);

}  // namespace hapax::payload
