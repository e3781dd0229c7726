// Removes expired keys, in the worker that holds the lease. A thread and a session of its own:
// neither checkpoints nor claims wait for it.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <thread>

#include "store/session.hpp"

namespace hapax::worker {

class Retention {
 public:
  Retention(std::function<store::Session()> connect, std::string worker_name);

 private:
  void run(const std::stop_token& stop);
  void remove_expired(const std::stop_token& stop);

  const std::function<store::Session()> connect_;
  const std::string worker_name_;
  std::jthread thread_;
};

}  // namespace hapax::worker
