// What users run: no crash points.
#include "flow/crash_point.hpp"

namespace hapax::flow {

// Weak: the test kit's own wins, in whichever order a program links the two libraries.
__attribute__((weak)) void crash_point(const char* /*name*/) noexcept {}

}  // namespace hapax::flow
