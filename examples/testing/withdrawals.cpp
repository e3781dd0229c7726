#include "withdrawals.hpp"

#include <hapax/plugin.hpp>

HAPAX_PLUGIN(hapax::handler<Withdrawals>("withdrawals", "1"))
