// The kit's crash points: as in src/flow/crash_points/on.cpp, but armed by a call.
#pragma once

namespace hapax::testing {

// The next time this process comes to the point of this name it kills itself with SIGKILL.
// `name`: lives for ever. Thread safety: none; before threads that run handlers.
void arm_crash(const char* name) noexcept;

}  // namespace hapax::testing
