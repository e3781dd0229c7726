#include "tools/bench/meter.hpp"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace hapax::app {
namespace {

// A line of /proc/self/status, in bytes.
std::size_t resident(const std::string& wanted) {
  std::ifstream status("/proc/self/status");
  std::string name;
  for (std::size_t kib = 0; status >> name; status.ignore(1000, '\n'))
    if (name == wanted && status >> kib) return kib * 1024;
  return 0;
}

}  // namespace

void RateMeter::settled(std::size_t count) {
  const std::size_t before = count_.fetch_add(count);
  const std::size_t after = before + count;
  if (before < warm_up_ && after >= warm_up_) {
    const std::lock_guard lock(mutex_);
    began_ = Clock::now();
    measured_ = messages_ - after;
    ended_there_.notify_all();
  }
  if (before < messages_ && after >= messages_) {
    const std::lock_guard lock(mutex_);
    ended_ = Clock::now();
    ended_there_.notify_all();
  }
}

bool RateMeter::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return ended_there_.wait_for(lock, timeout, [this] { return began_ && ended_; });
}

double RateMeter::per_second() const {
  const std::lock_guard lock(mutex_);
  const std::chrono::duration<double> took = *ended_ - *began_;
  return static_cast<double>(measured_) / std::max(took.count(), 1e-9);
}

LatencyMeter::LatencyMeter(std::size_t messages, double rate)
    : rate_(rate), nanoseconds_(messages) {
  for (auto& each : nanoseconds_) each = -1;
}

LatencyMeter::Clock::time_point LatencyMeter::due(std::size_t n) const {
  return began_.load() +
         std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(n) / rate_ * 1e9));
}

void LatencyMeter::settled(std::size_t n) {
  if (n < nanoseconds_.size())
    nanoseconds_[n] =
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - due(n)).count();
  ++count_;
}

std::vector<std::chrono::nanoseconds> LatencyMeter::sorted() const {
  std::vector<std::chrono::nanoseconds> all;
  for (const auto& each : nanoseconds_)
    if (each >= 0) all.emplace_back(each.load());
  std::ranges::sort(all);
  return all;
}

MemoryMeter::MemoryMeter() {
  malloc_trim(0);  // otherwise memory that was freed before would be used again unseen
  before_ = resident("VmRSS:");
  std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
}

std::size_t MemoryMeter::peak() const {
  const std::size_t peak = resident("VmHWM:");
  return peak > before_ ? peak - before_ : 0;
}

}  // namespace hapax::app
