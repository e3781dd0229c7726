// HAPAX_CHECK: an invariant whose breach means that nothing after it can be trusted. Always on.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace hapax::worker {

[[noreturn]] inline void check_failed(const char* condition, const char* why, const char* file,
                                      int line) {
  std::fprintf(stderr, "hapax: broken invariant: %s (%s) at %s:%d\n", why, condition, file, line);
  std::abort();
}

}  // namespace hapax::worker

#define HAPAX_CHECK(condition, why)                                                       \
  do {                                                                                    \
    if (!(condition)) ::hapax::worker::check_failed(#condition, why, __FILE__, __LINE__); \
  } while (false)
