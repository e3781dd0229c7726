// The payments handler of `hapax demo`, linked into every binary so that the demo needs no plugin.
#pragma once

#include "hapax/handler.hpp"

namespace hapax::app {

inline constexpr const char* kDemoHandler = "payments-demo";

// Its table, without any unique constraint: nothing but hapax stands against a double payment.
inline constexpr const char* kDemoTable =
    "CREATE TABLE payments (id text NOT NULL, account text NOT NULL, amount_minor bigint NOT NULL)";

HandlerFactory demo_handler();

}  // namespace hapax::app
