#include "@name@.hpp"

#include <hapax/plugin.hpp>

HAPAX_PLUGIN(hapax::handler<@Class@>("@name@", "1"))
