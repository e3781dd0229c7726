// Asks calls to stop. That runs stop callbacks of handlers, which may block. Threads of their
// own do it, and hapax never waits for these.
//
// Thread safety: all of it, from any thread.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

namespace hapax::outside {

class StopRequests {
 public:
  StopRequests();

  // Requests these stops, and those that earlier ones hold up. So call it again and again, also
  // with none: then a callback that blocks delays the others until the next call only. Does not
  // block.
  void request(const std::vector<std::stop_source>& stops);

 private:
  struct Waiting;
  std::shared_ptr<Waiting> waiting_;  // the threads may outlive this
};

}  // namespace hapax::outside
