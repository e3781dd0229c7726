#include "gate/open_files.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace hapax::gate {
namespace {

// Beside the lanes' sessions: libraries, brokers of Kafka, the admin server, files of handlers.
constexpr std::size_t kOthers = 100;

}  // namespace

void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::size_t open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<std::size_t>::max();
  return limit.rlim_cur;
}

std::size_t connections_that_fit(const config::Gate& gate, std::size_t open_files) {
  const std::size_t others = std::min(kOthers + gate.lanes, open_files / 2);
  return std::min(gate.limits.connections, open_files - others);
}

}  // namespace hapax::gate
