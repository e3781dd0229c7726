// A handler as a plugin: one line, HAPAX_PLUGIN(hapax::handler<Payments>("payments")).
//
// The plugin exports one C symbol with the versions it was built with. hapax reads that before it
// calls anything. It refuses another ABI in one sentence that names both sides.
//
// A plugin may use another nlohmann_json than hapax. JSON crosses as text, and the functions of
// these headers that read or write it are hidden, so that each side calls its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#if __has_include(<pqxx/version>)
#include <pqxx/version>
#endif

#include "hapax/handler.hpp"

// Raised whenever the layout or meaning of anything in include/hapax changes.
#define HAPAX_ABI 5

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
  std::uint32_t abi;
  const char* compiler_abi;
  const char* pqxx_version;
  // Fills a std::vector<hapax::HandlerFactory>. hapax calls it only if everything above matches.
  void (*list)(void* factories);
};
}

// Several handlers in one plugin: HAPAX_PLUGIN(hapax::handler<A>("a"), hapax::handler<B>("b"))
#undef HAPAX_PLUGIN  // which handler.hpp defined, for whoever forgot this header
#define HAPAX_PLUGIN(...)                                                                     \
  extern "C" __attribute__((visibility("default"))) const HapaxPluginDescriptor hapax_plugin; \
  const HapaxPluginDescriptor hapax_plugin = {                                                \
      HAPAX_ABI, HAPAX_COMPILER_ABI, HAPAX_PQXX_VERSION, [](void* factories) {                \
        *static_cast<std::vector<hapax::HandlerFactory>*>(factories) = {__VA_ARGS__};         \
      }};
