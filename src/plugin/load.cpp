#include "plugin/load.hpp"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "hapax/plugin.hpp"

namespace hapax::plugin {
namespace {

// Another version of a library than ours, in one sentence; empty if they agree.
std::string mismatch(const HapaxPluginDescriptor& its) {
  const auto differ = [](const std::string& what, const std::string& theirs,
                         const std::string& ours) {
    return "was built for " + what + " " + theirs + ", this hapax has " + ours +
           ": build it again with this hapax's headers and compiler";
  };
  if (its.abi != HAPAX_ABI)
    return differ("hapax ABI", std::to_string(its.abi), std::to_string(HAPAX_ABI));
  if (std::strcmp(its.compiler_abi, HAPAX_COMPILER_ABI) != 0)
    return differ("compiler ABI", its.compiler_abi, HAPAX_COMPILER_ABI);
  // A plugin that never saw libpqxx cannot disagree about it.
  if (std::strcmp(its.pqxx_version, "none") != 0 &&
      std::strcmp(its.pqxx_version, HAPAX_PQXX_VERSION) != 0)
    return differ("libpqxx", its.pqxx_version, HAPAX_PQXX_VERSION);
  return {};
}

}  // namespace

std::vector<HandlerFactory> load_plugin(const std::string& path) {
  // dlopen searches the system's folders for a name without a slash.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  if (!std::filesystem::exists(file))
    throw std::runtime_error(
        "cannot load the plugin: " + std::filesystem::absolute(file).lexically_normal().string() +
        " is not there. Has it been built?");
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr)
    throw std::runtime_error(std::string("cannot load the plugin: ") + dlerror());
  const auto* const descriptor =
      static_cast<const HapaxPluginDescriptor*>(dlsym(library, "hapax_plugin"));
  if (descriptor == nullptr)
    throw std::runtime_error(path + " is no hapax plugin: it has no HAPAX_PLUGIN(…) line");
  if (const std::string why = mismatch(*descriptor); !why.empty())
    throw std::runtime_error("plugin " + path + " " + why);
  std::vector<HandlerFactory> factories;
  descriptor->list(&factories);
  return factories;
}

}  // namespace hapax::plugin
