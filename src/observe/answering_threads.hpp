// Threads that make answers, for a server whose loop must not wait: an answer may take as long as
// PostgreSQL or Kafka do.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sync/mutex.hpp"

namespace hapax::observe {

// Thread safety: give(), drop() and take() on one thread; `make` runs on several.
class AnsweringThreads {
 public:
  using Made = std::pair<std::uint64_t, std::string>;  // the id, and its answer

  // `made`: called after each answer, on the thread that made it. Precondition: signals are blocked
  // in the thread that calls this, because the new threads inherit that.
  AnsweringThreads(std::size_t count, std::function<std::string(const std::string&)> make,
                   std::function<void()> made);
  // Blocks: until the answers that are being made are made. Those that wait are dropped.
  ~AnsweringThreads();
  AnsweringThreads(const AnsweringThreads&) = delete;
  AnsweringThreads& operator=(const AnsweringThreads&) = delete;

  // The queue has no bound of its own: a server has at most one request for each connection.
  void give(std::uint64_t id, std::string request);

  // Takes it back, if no thread has begun with it.
  void drop(std::uint64_t id);

  // The answers made since the last time.
  std::vector<Made> take();

 private:
  void work();

  const std::function<std::string(const std::string&)> make_;
  const std::function<void()> made_;
  sync::Mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ HAPAX_GUARDED_BY(mutex_) = false;
  std::deque<Made> waiting_ HAPAX_GUARDED_BY(mutex_);  // requests
  std::vector<Made> answers_ HAPAX_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace hapax::observe
