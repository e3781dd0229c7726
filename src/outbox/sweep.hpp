// Once a minute: finds records that the low-water marks have passed by mistake, and folds the
// counts of published records. It may take long, so it has a thread and a session of its own.
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

  // No mark has passed a record yet, so the first sweep comes after a whole period.
  void begin() { next_at_ = std::chrono::steady_clock::now() + every_; }

  // Returns the topics that a sweep has found, once. Starts the next sweep if it is due. `marks`:
  // topic → the id behind which it is read. Throws: nothing of PostgreSQL's. Blocks: no.
  std::set<std::string> turn(const std::function<std::map<std::string, std::int64_t>()>& marks);

 private:
  const std::string group_;
  const std::function<store::Session()> connect_;
  const std::chrono::seconds every_;
  std::chrono::steady_clock::time_point next_at_{};
  std::future<std::set<std::string>> running_;
};

}  // namespace hapax::outbox
