#include "observe/answering_threads.hpp"

namespace hapax::observe {

AnsweringThreads::AnsweringThreads(std::size_t count,
                                   std::function<std::string(const std::string&)> make,
                                   std::function<void()> made)
    : make_(std::move(make)), made_(std::move(made)) {
  for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
}

AnsweringThreads::~AnsweringThreads() {
  {
    const sync::Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void AnsweringThreads::give(std::uint64_t id, std::string request) {
  {
    const sync::Lock lock(mutex_);
    waiting_.emplace_back(id, std::move(request));
  }
  changed_.notify_one();
}

void AnsweringThreads::drop(std::uint64_t id) {
  const sync::Lock lock(mutex_);
  std::erase_if(waiting_, [&](const Made& asked) { return asked.first == id; });
}

std::vector<AnsweringThreads::Made> AnsweringThreads::take() {
  const sync::Lock lock(mutex_);
  return std::exchange(answers_, {});
}

void AnsweringThreads::work() {
  for (;;) {
    Made asked;
    {
      sync::Lock lock(mutex_);
      while (!stopping_ && waiting_.empty()) changed_.wait(lock.waitable());
      if (stopping_) return;
      asked = std::move(waiting_.front());
      waiting_.pop_front();
    }
    std::string answer = make_(asked.second);
    {
      const sync::Lock lock(mutex_);
      answers_.emplace_back(asked.first, std::move(answer));
    }
    made_();
  }
}

}  // namespace hapax::observe
