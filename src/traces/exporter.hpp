// Sends spans to an OpenTelemetry collector, by OTLP over HTTP.
//
// Spans may be lost, messages may not. So send() never waits for the network. If the collector is
// slow or away, spans wait within kMaxQueuedBytes; those beyond are dropped and counted. A thread
// of its own sends, and is the only one that does.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "observe/http_post.hpp"
#include "observe/metrics.hpp"
#include "sync/mutex.hpp"
#include "traces/otlp.hpp"
#include "traces/span.hpp"

namespace hapax::traces {

inline constexpr std::size_t kMaxQueuedBytes = std::size_t{8} << 20;
// After its end was asked for, no request begins later than this.
inline constexpr std::chrono::milliseconds kFlushTimeout{2'000};

class Exporter {
 public:
  // `metrics` outlives it.
  Exporter(const observe::HttpTarget& target, Resource resource, observe::Metrics& metrics);

  ~Exporter() { end(); }
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  // Any thread. Throws: nothing that is not std::bad_alloc. Blocks: no.
  void send(Span span);

  // Sends what waits, unless the collector was away. What comes later is not sent.
  // Blocks: kFlushTimeout, and for the request that runs (see HttpPost). One thread only.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  std::vector<Span> take() HAPAX_REQUIRES(mutex_);
  bool may_go_on() HAPAX_REQUIRES(mutex_);
  // True if they need not be sent again.
  bool post(const std::string& body, std::size_t spans);
  void failed(const std::string& error);
  void succeeded();

  const Resource resource_;
  observe::Metrics& metrics_;
  observe::HttpPost collector_;         // the thread's own, as the next three
  std::chrono::milliseconds pause_{0};  // before the next request, after one that failed
  bool fails_ = false;                  // since it was logged
  std::size_t lost_ = 0;                // spans that the collector refused since then

  sync::Mutex mutex_;
  std::condition_variable wake_;
  std::deque<Span> queue_ HAPAX_GUARDED_BY(mutex_);
  std::size_t bytes_ HAPAX_GUARDED_BY(mutex_) = 0;  // of the queue
  bool stopping_ HAPAX_GUARDED_BY(mutex_) = false;
  Clock::time_point until_ HAPAX_GUARDED_BY(mutex_){};  // once it stops
  std::thread thread_;                                  // last: it uses all of the above
};

}  // namespace hapax::traces
