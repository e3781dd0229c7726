// Named places at which a test kills or holds up the process, to see what the next delivery finds.
//
// The program `hapax` is linked with crash_points/off.cpp, in which the call does nothing.
// `hapax_crashable`, which only tests run, is linked with crash_points/on.cpp.
#pragma once

namespace hapax::flow {

void crash_point(const char* name) noexcept;

}  // namespace hapax::flow
