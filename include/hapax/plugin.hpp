// A handler as a plugin: one line, HAPAX_PLUGIN(hapax::handler<Payments>("payments")).
//
// The plugin exports one C symbol with the versions that it was built with. hapax reads this symbol
// before it calls anything of the plugin. If a version differs from hapax's own, the worker does
// not start, and the error names both versions. hapax never unloads a plugin.
//
// A plugin may use another nlohmann_json than hapax. JSON crosses as text, and the functions of
// these headers that read or write it are hidden, so that each side calls its own.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#if __has_include(<pqxx/version>)
#include <pqxx/version>
#endif

#include "hapax/handler.hpp"

// Raised whenever the layout or meaning of anything in include/hapax changes.
#define HAPAX_ABI 10

#define HAPAX_TEXT_OF(x) #x
#define HAPAX_TEXT(x) HAPAX_TEXT_OF(x)

// The C++ ABI: compiler ABI version and std::string layout.
#if defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
#define HAPAX_STRING_ABI "-cxx11"
#else
#define HAPAX_STRING_ABI "-old"
#endif
#ifdef _GLIBCXX_DEBUG  // other containers
#define HAPAX_CONTAINER_ABI "-debug"
#else
#define HAPAX_CONTAINER_ABI ""
#endif
#define HAPAX_COMPILER_ABI \
  "itanium-" HAPAX_TEXT(__GXX_ABI_VERSION) HAPAX_STRING_ABI HAPAX_CONTAINER_ABI

#ifdef PQXX_VERSION
#define HAPAX_PQXX_VERSION PQXX_VERSION
#else
#define HAPAX_PQXX_VERSION "none"
#endif

extern "C" {
// Plain C, so that hapax can read it from a plugin of any compiler. `abi` stays first.
struct HapaxPluginDescriptor {
  std::uint32_t abi;         // HAPAX_ABI
  const char* compiler_abi;  // HAPAX_COMPILER_ABI
  const char* pqxx_version;  // HAPAX_PQXX_VERSION; "none" if the plugin did not see libpqxx
  // Fills a std::vector<hapax::HandlerFactory>. hapax calls it only if everything above matches.
  void (*list)(void* factories);
};
}

// Several handlers in one plugin: HAPAX_PLUGIN(hapax::handler<A>("a"), hapax::handler<B>("b"))
#undef HAPAX_PLUGIN  // handler.hpp defines one that names this header, if it is forgotten
#define HAPAX_PLUGIN(...)                                                                     \
  extern "C" __attribute__((visibility("default"))) const HapaxPluginDescriptor hapax_plugin; \
  const HapaxPluginDescriptor hapax_plugin = {                                                \
      HAPAX_ABI, HAPAX_COMPILER_ABI, HAPAX_PQXX_VERSION, [](void* factories) {                \
        static_assert(std::convertible_to<__typeof__(__VA_ARGS__), hapax::HandlerFactory>,    \
                      "HAPAX_PLUGIN wants factories, as in "                                  \
                      "HAPAX_PLUGIN(hapax::handler<Payments>(\"payments\"))");                \
        *static_cast<std::vector<hapax::HandlerFactory>*>(factories) = {__VA_ARGS__};         \
      }};
