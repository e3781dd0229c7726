#include "traces/exporter.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "observe/log.hpp"
#include "observe/without_signals.hpp"

namespace hapax::traces {
namespace {

using std::chrono::milliseconds;
namespace log = observe::log;

constexpr milliseconds kInterval{1'000};  // the longest that a span waits for others
// Of one request, well below the 20 MiB that a collector takes.
constexpr std::size_t kMostSpans = 1'000;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr milliseconds kFirstPause{1'000}, kMaxPause{30'000};

// As OTLP has it: the collector is away or overloaded, and asks for the same request later.
bool may_be_taken_later(int status) {
  return status == 0 || status == 429 || (status >= 502 && status <= 504);
}

// A collector may take some spans of a request only.
std::size_t refused_of(const std::string& body) {
  const auto answer = nlohmann::json::parse(body, nullptr, false);
  if (!answer.is_object()) return 0;
  const auto partial = answer.find("partialSuccess");
  if (partial == answer.end() || !partial->is_object()) return 0;
  const auto count = partial->find("rejectedSpans");
  if (count == partial->end()) return 0;
  if (count->is_number_unsigned()) return count->get<std::size_t>();
  return count->is_string()
             ? std::strtoull(count->get_ref<const std::string&>().c_str(), nullptr, 10)
             : 0;
}

}  // namespace

Exporter::Exporter(const observe::HttpTarget& target, Resource resource, observe::Metrics& metrics)
    : resource_(std::move(resource)),
      metrics_(metrics),
      collector_(target),
      thread_(observe::without_signals([this] { run(); })) {}

void Exporter::end() {
  {
    const sync::Lock lock(mutex_);
    stopping_ = true;
    until_ = Clock::now() + kFlushTimeout;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Exporter::send(Span span) {
  const std::size_t size = span.bytes();
  bool is_full = false, is_due = false;
  {
    const sync::Lock lock(mutex_);
    is_full = bytes_ + size > kMaxQueuedBytes;
    if (!is_full) {
      bytes_ += size;
      queue_.push_back(std::move(span));
      is_due = queue_.size() == kMostSpans || (bytes_ >= kMostBytes && bytes_ - size < kMostBytes);
    }
  }
  if (is_full) metrics_.spans(observe::SpanEnd::dropped, 1);
  if (is_due) wake_.notify_all();
}

std::vector<Span> Exporter::take() {
  std::vector<Span> taken;
  for (std::size_t size = 0; !queue_.empty() && taken.size() < kMostSpans && size < kMostBytes;) {
    const std::size_t bytes = queue_.front().bytes();
    size += bytes;
    bytes_ -= std::min(bytes_, bytes);
    taken.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return taken;
}

// At its end it does not wait for a collector that is away.
bool Exporter::may_go_on() {
  return !stopping_ || (!queue_.empty() && !fails_ && Clock::now() < until_);
}

void Exporter::run() {
  std::string body;  // "": nothing waits to be sent again
  std::size_t spans = 0;
  for (;;) {
    std::vector<Span> taken;
    {
      sync::Lock lock(mutex_);
      const auto until = Clock::now() + (body.empty() ? kInterval : pause_);
      wake_.wait_until(lock.waitable(), until, [&]() HAPAX_REQUIRES(mutex_) {
        return stopping_ || (body.empty() && (queue_.size() >= kMostSpans || bytes_ >= kMostBytes));
      });
      if (!may_go_on()) {
        spans += queue_.size();
        break;
      }
      if (body.empty()) taken = take();
    }
    if (!taken.empty()) {
      spans = taken.size();
      body = otlp_json(resource_, taken);
    }
    if (body.empty() || !post(body, spans)) continue;
    body.clear();
    spans = 0;
  }
  if (spans > 0) metrics_.spans(observe::SpanEnd::dropped, spans);
}

bool Exporter::post(const std::string& body, std::size_t spans) {
  const observe::HttpPost::Answer answer = collector_.post(body, "application/json");
  if (answer.is_good()) {
    const std::size_t refused = std::min(spans, refused_of(answer.body));
    metrics_.spans(observe::SpanEnd::sent, spans - refused);
    if (refused > 0) metrics_.spans(observe::SpanEnd::refused, refused);
    succeeded();
    return true;
  }
  failed(answer.error);
  if (may_be_taken_later(answer.status)) return false;
  metrics_.spans(observe::SpanEnd::refused, spans);
  lost_ += spans;
  return true;
}

void Exporter::failed(const std::string& error) {
  pause_ = pause_ == milliseconds(0) ? kFirstPause : std::min(2 * pause_, kMaxPause);
  if (std::exchange(fails_, true)) return;
  lost_ = 0;
  log::warning("traces_fail", {{"error", error}},
               "the collector does not take spans; messages go on without them. See "
               "traces.endpoint, and hapax_spans_total for what is lost");
}

void Exporter::succeeded() {
  pause_ = milliseconds(0);
  if (!std::exchange(fails_, false)) return;
  log::info("traces_work", {{"refused", lost_}}, "the collector takes spans again");
}

}  // namespace hapax::traces
