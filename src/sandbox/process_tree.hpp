// Ends a process with its children at once, as a power cut would.
#pragma once

#include "sandbox/child_process.hpp"

namespace hapax::sandbox {

// SIGKILL for the process and its direct children. Killing the parent alone is not enough for
// PostgreSQL: its children notice a little later, and a new server refuses to start beside them.
// Throws: std::runtime_error if some are left after 10 s. Blocks: until all are gone.
void kill_tree(ChildProcess& process);

}  // namespace hapax::sandbox
