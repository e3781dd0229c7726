// A net below the low-water marks: it finds records that the marks have passed. It may walk long,
// so it has a thread and a session of its own.
//
// Thread safety: none; it belongs to the relay's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <set>
#include <string>

#include "outbox/relay_setup.hpp"

namespace hapax::outbox {

class Sweep {
 public:
  explicit Sweep(const RelaySetup& setup);

  // Nothing was read before now, so the first one is a whole period away.
  void begin() { next_at_ = std::chrono::steady_clock::now() + every_; }

  // The topics that a sweep has found, once. Starts the next one if it is due. `marks`: topic → the
  // id behind which it is read. Throws: nothing of PostgreSQL's. Blocks: no.
  std::set<std::string> turn(const std::function<std::map<std::string, std::int64_t>()>& marks);

 private:
  const std::string group_;
  const std::function<store::Session()> connect_;
  const std::chrono::seconds every_;
  std::chrono::steady_clock::time_point next_at_{};
  std::future<std::set<std::string>> running_;
};

}  // namespace hapax::outbox
