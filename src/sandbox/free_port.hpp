// A TCP port for a server to be started.
#pragma once

#include <cstdint>

namespace hapax::sandbox {

// A free port of 127.0.0.1. It lies below the range from which the kernel
// serves outgoing connections, so a server that is stopped and started again finds it free.
// Throws: std::system_error, std::runtime_error.
std::uint16_t free_port();

}  // namespace hapax::sandbox
