// When to ask PostgreSQL again for what it has refused to do for one call.
#pragma once

#include <algorithm>
#include <chrono>

namespace hapax::worker {

// A refusal may take as long as statement_timeout. So the thread that asks has nine tenths of its
// time for other calls.
inline std::chrono::steady_clock::time_point after_refusal(
    std::chrono::steady_clock::time_point asked) {
  const auto now = std::chrono::steady_clock::now();
  return now +
         std::max<std::chrono::steady_clock::duration>(std::chrono::seconds(1), 9 * (now - asked));
}

}  // namespace hapax::worker
