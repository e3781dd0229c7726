// A thread of the gate that looks at files which may change while the gate runs.
#pragma once

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "worker/stoppable_wait.hpp"

namespace hapax::gate {

class Reload {
 public:
  // Calls `look` at once, and then again each time when `between` has passed since it returned.
  // `look` must not throw.
  Reload(std::chrono::milliseconds between, std::function<void()> look)
      : thread_([between, look = std::move(look)](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            look();
            worker::wait_unless_stopped(stop, between);
          }
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace hapax::gate
