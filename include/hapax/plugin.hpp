// A handler as a plugin: one line, HAPAX_PLUGIN(hapax::handler<Payments>("payments")).
//
// The plugin exports one C symbol with the versions it was built with. hapax reads that before it
// calls anything. It refuses another ABI in one sentence that names both sides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#if __has_include(<pqxx/version>)
#include <pqxx/version>
#endif

#include "hapax/handler.hpp"

// Raised whenever the layout or meaning of anything in include/hapax changes.
#define HAPAX_ABI 2

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

// nlohmann::json is in the interface (Setup, Message), so its layout is part of the ABI.
#if defined(JSON_DIAGNOSTICS) && JSON_DIAGNOSTICS  // each value knows its parent
#define HAPAX_JSON_DIAGNOSTICS "-diagnostics"
#else
#define HAPAX_JSON_DIAGNOSTICS ""
#endif
#if defined(JSON_DIAGNOSTIC_POSITIONS) && JSON_DIAGNOSTIC_POSITIONS  // and its position
#define HAPAX_JSON_POSITIONS "-positions"
#else
#define HAPAX_JSON_POSITIONS ""
#endif
#define HAPAX_JSON_VERSION                                                                \
  HAPAX_TEXT(NLOHMANN_JSON_VERSION_MAJOR)                                                 \
  "." HAPAX_TEXT(NLOHMANN_JSON_VERSION_MINOR) "." HAPAX_TEXT(NLOHMANN_JSON_VERSION_PATCH) \
      HAPAX_JSON_DIAGNOSTICS HAPAX_JSON_POSITIONS

extern "C" {
// Plain C, so that hapax can read it from a plugin of any compiler. Append only.
struct HapaxPluginDescriptor {
  std::uint32_t abi;
  const char* compiler_abi;
  const char* pqxx_version;
  const char* json_version;
  // Fills a std::vector<hapax::HandlerFactory>. hapax calls it only if everything above matches.
  void (*list)(void* factories);
};
}

// Several handlers in one plugin: HAPAX_PLUGIN(hapax::handler<A>("a"), hapax::handler<B>("b"))
#define HAPAX_PLUGIN(...)                                                                          \
  extern "C" __attribute__((visibility("default"))) const HapaxPluginDescriptor hapax_plugin;      \
  const HapaxPluginDescriptor hapax_plugin = {                                                     \
      HAPAX_ABI, HAPAX_COMPILER_ABI, HAPAX_PQXX_VERSION, HAPAX_JSON_VERSION, [](void* factories) { \
        *static_cast<std::vector<hapax::HandlerFactory>*>(factories) = {__VA_ARGS__};              \
      }};
