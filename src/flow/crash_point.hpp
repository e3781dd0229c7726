// Named places at which a test kills or holds up the process, to see what the next delivery finds.
//
// hapax is linked with crash_points/off.cpp, where the call is nothing; hapax_crashable, which only
// tests run, with crash_points/on.cpp.
#pragma once

namespace hapax::flow {

void crash_point(const char* name) noexcept;

}  // namespace hapax::flow
