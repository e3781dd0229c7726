#include "outbox/gauges.hpp"

#include "store/message/publications.hpp"

namespace hapax::outbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kMeasure = 2s;
constexpr auto kMeasureLater = 60s;            // after a measurement that took too long
constexpr const char* kTookTooLong = "57014";  // by statement_timeout

}  // namespace

Gauges::Gauges(observe::Metrics& metrics, std::string group,
               const std::map<std::string, std::string>& letters)
    : metrics_(metrics), group_(std::move(group)) {
  for (const auto& [from, to] : letters) {
    consumed_.push_back(from);
    destinations_.push_back(to);
  }
}

void Gauges::measure(store::Session& session, std::size_t halts,
                     const std::function<std::map<std::string, std::int64_t>()>& marks) {
  measured(records_again_, [&] { last_ = store::measure_outbox(session, group_, marks()); });
  metrics_.outbox_measured(last_.unsent, last_.oldest_seconds, halts);
}

void Gauges::measure_letters(store::Session& session) {
  if (consumed_.empty()) return;
  measured(letters_again_, [&] {
    metrics_.dead_letters_unpublished(
        store::count_unpublished(session, group_, consumed_, destinations_));
  });
}

// While another session holds an old snapshot, the measurement walks over all removed rows. Records
// must go on meanwhile. So if it takes too long, the next one comes later, and the gauges keep
// their values.
void Gauges::measured(Clock::time_point& again, const std::function<void()>& measurement) {
  if (Clock::now() < again) return;
  again = Clock::now() + kMeasure;
  try {
    measurement();
  } catch (const store::DatabaseError& error) {
    if (error.sqlstate() != kTookTooLong) throw;
    again = Clock::now() + kMeasureLater;
  }
}

void Gauges::forget() {
  last_ = {};
  metrics_.outbox_measured(0, 0, 0);
}

}  // namespace hapax::outbox
