// The build for users has no crash points.
#include "flow/crash_point.hpp"

namespace hapax::flow {

// Weak, so that the test kit's own version wins, in any order in which a program links the two
// libraries.
__attribute__((weak)) void crash_point(const char* /*name*/) noexcept {}

}  // namespace hapax::flow
