// A worker of `hapax bench`: what `hapax run` runs, in this process, so that the bench sees each
// message settle.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>

#include "cli/command.hpp"
#include "worker/worker.hpp"

namespace hapax::app {

// What a worker is to do. `config`: its route is made from the rest.
struct BenchWork {
  config::Config config;
  std::string topic;
  std::string scope;
  std::size_t batch = 1;
  bool by_position = false;
  HandlerFactory handler;
};

// Thread safety: none.
class BenchWorker {
 public:
  // Starts it. `settled`: by any lane, for each message. Throws: Stop.
  BenchWorker(BenchWork work, std::function<void(const Message&)> settled);

  // Drains and leaves the group. Blocks: at most worker.shutdown_timeout and some.
  ~BenchWorker();
  BenchWorker(const BenchWorker&) = delete;
  BenchWorker& operator=(const BenchWorker&) = delete;

  // Throws: Stop if it has ended by itself.
  void expect_running() const;

 private:
  void run();

  const config::Config config_;
  observe::Health health_;
  observe::Metrics metrics_;
  worker::StopSignal stop_{0};
  std::atomic<bool> ended_{false};
  std::string why_;  // before ended_
  std::unique_ptr<worker::Worker> worker_;
  std::thread thread_;
};

}  // namespace hapax::app
