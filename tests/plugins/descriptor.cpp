// A library with the descriptor that HAPAX_TEST_DESCRIPTOR gives, or with none.
#include <hapax/plugin.hpp>

#include <cstdlib>

#ifdef HAPAX_TEST_DESCRIPTOR
extern "C" __attribute__((visibility("default"))) const HapaxPluginDescriptor hapax_plugin;
const HapaxPluginDescriptor hapax_plugin = {HAPAX_TEST_DESCRIPTOR, [](void*) { std::abort(); }};
#endif
