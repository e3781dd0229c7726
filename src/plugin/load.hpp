// Handlers from shared libraries. The only place that knows dlopen.
#pragma once

#include <string>
#include <vector>

#include "hapax/handler.hpp"

namespace hapax::plugin {

// Loads a plugin (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) and lists its handlers. It is never
// unloaded: exceptions and objects of its classes may outlive any use of it.
// Throws: std::runtime_error: one sentence on what is wrong with the file; for another ABI
//   it names both sides.
// Thread safety: call it before other threads run.
std::vector<HandlerFactory> load_plugin(const std::string& path);

}  // namespace hapax::plugin
