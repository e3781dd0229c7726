// HAPAX_CRASH_AT="claimed:3" kills the process with SIGKILL the third time it reaches "claimed";
// "claimed:hang" holds up each thread that reaches it.
#include "flow/crash_point.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string_view>

namespace hapax::flow {

void crash_point(const char* name) noexcept {
  static const char* const wanted = std::getenv("HAPAX_CRASH_AT");
  if (wanted == nullptr) return;
  const std::string_view text(wanted);
  const std::size_t colon = text.find(':');
  if (text.substr(0, colon) != name) return;
  while (text.ends_with(":hang")) pause();
  static std::atomic<int> left(colon == std::string_view::npos ? 1 : std::atoi(wanted + colon + 1));
  if (--left == 0) std::raise(SIGKILL);
}

}  // namespace hapax::flow
