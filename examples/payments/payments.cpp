// The handler as a plugin: hapax run -c worker.json --plugin ./libpayments.so
#include <hapax/plugin.hpp>

#include "payments.hpp"

HAPAX_PLUGIN(hapax::handler<Payments>("payments", "1"))
