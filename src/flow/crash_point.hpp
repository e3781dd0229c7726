// Named places where a test kills the process, to see what the next delivery finds.
//
// Only binaries built with HAPAX_CRASH_POINTS have them; elsewhere the call is nothing. There,
// HAPAX_CRASH_AT="claimed:3" kills the process with SIGKILL the third time it reaches "claimed".
#pragma once

#ifdef HAPAX_CRASH_POINTS
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#endif

namespace hapax::flow {

#ifdef HAPAX_CRASH_POINTS
inline void crash_point(std::string_view name) {
  static const char* const wanted = std::getenv("HAPAX_CRASH_AT");
  if (wanted == nullptr) return;
  const std::string_view text(wanted);
  const std::size_t colon = text.find(':');
  if (text.substr(0, colon) != name) return;
  static std::atomic<int> left(colon == std::string_view::npos ? 1 : std::atoi(wanted + colon + 1));
  if (--left == 0) std::raise(SIGKILL);
}
#else
inline void crash_point(const char*) {}
#endif

}  // namespace hapax::flow
