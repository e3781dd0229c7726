// The parts of gate.json that are for routes with "accept".
#pragma once

#include "config/gate.hpp"
#include "config/reader.hpp"

namespace hapax::config {

// A route's "accept". Finishes its object.
void read_accept(Object& section, GateAccept& accept);

// "gate.operations". Finishes its object.
void read_operations(Object& section, std::string& key);

// What routes with "accept" need beside them: the topics to be published to, the path of their
// operations. Reports what is missing for them.
void complete_accepting(Object& root, GateConfig& config);

}  // namespace hapax::config
