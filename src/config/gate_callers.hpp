// The parts of gate.json that tell who may call, and how: "gate.callers" and "gate.tls".
#pragma once

#include "config/gate.hpp"
#include "config/reader.hpp"

namespace hapax::config {

// Of a tenant's name.
inline constexpr std::size_t kMaxTenant = 200;

// Of a-z, 0-9, - and _, and not empty.
bool is_lower_token(const std::string& text);

// Of ASCII, without blanks.
bool is_printable(const std::string& text);

// "gate.callers". `certificates`: those of clients tell who calls, too. Finishes its object.
void read_callers(Object& section, GateCallers& callers, bool certificates);

// "gate.tls". Finishes its object.
void read_tls(Object& section, GateTls& tls);

}  // namespace hapax::config
