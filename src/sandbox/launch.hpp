// fork and exec, done by hand: posix_spawn cannot change the user or set the death signal.
#pragma once

#include <sys/types.h>

#include "sandbox/child_process.hpp"

namespace hapax::sandbox {

// Starts the program with a clean signal state and no descriptors of ours beside 0, 1 and 2.
// `output`: becomes stdout and stderr; -1: ours stay. Throws: std::system_error.
pid_t launch(const Program& program, int output);

}  // namespace hapax::sandbox
