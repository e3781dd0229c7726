// How many connections fit into the files that the process may open. Without a file the gate can
// neither accept a connection, nor read its tokens again, nor open a session of PostgreSQL.
//
// Thread safety: all of it.
#pragma once

#include <cstddef>

#include "config/gate.hpp"

namespace hapax::gate {

// Raises the process' limit as far as the system allows.
void raise_open_files();

// The process' limit.
std::size_t open_files();

// gate.limits.connections, or fewer if that leaves no files for the rest of the gate. Pure.
std::size_t connections_that_fit(const config::Gate& gate, std::size_t open_files);

}  // namespace hapax::gate
