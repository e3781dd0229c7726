#include "outside/stop_requests.hpp"

#include <deque>
#include <optional>
#include <system_error>
#include <thread>

#include "sync/mutex.hpp"

namespace hapax::outside {

struct StopRequests::Waiting {
  std::optional<std::stop_source> next() {
    const sync::Lock lock(mutex);
    if (stops.empty()) return std::nullopt;
    std::optional<std::stop_source> first = std::move(stops.front());
    stops.pop_front();
    return first;
  }

  sync::Mutex mutex;
  std::deque<std::stop_source> stops HAPAX_GUARDED_BY(mutex);
};

StopRequests::StopRequests() : waiting_(std::make_shared<Waiting>()) {}

void StopRequests::request(const std::vector<std::stop_source>& stops) {
  {
    const sync::Lock lock(waiting_->mutex);
    waiting_->stops.insert(waiting_->stops.end(), stops.begin(), stops.end());
    if (waiting_->stops.empty()) return;
  }
  try {
    std::thread([waiting = waiting_] {
      while (auto stop = waiting->next()) stop->request_stop();
    }).detach();
  } catch (const std::system_error&) {
    // The machine has no thread left now. The next call tries again.
  }
}

}  // namespace hapax::outside
