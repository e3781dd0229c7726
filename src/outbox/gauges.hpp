// Measures what waits for Kafka, for the metrics.
//
// Thread safety: none; it belongs to the relay's thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "observe/metrics.hpp"
#include "store/session.hpp"
#include "store/worker/outbox.hpp"

namespace hapax::outbox {

class Gauges {
 public:
  // `letters`: consumed topic → its dead letter topic.
  Gauges(observe::Metrics& metrics, std::string group,
         const std::map<std::string, std::string>& letters);

  // These measure what is due. Throw: DatabaseError. Block: at most a second.
  // `halts`: how many are open. An alert rests on it, so it is shown though a measurement takes too
  // long. `marks`: returns the topics of records, each with the id behind which it is read.
  void measure(store::Session& session, std::size_t halts,
               const std::function<std::map<std::string, std::int64_t>()>& marks);
  void measure_letters(store::Session& session);

  // Another relay measures the records from now on.
  void forget();

 private:
  using Clock = std::chrono::steady_clock;
  static void measured(Clock::time_point& again, const std::function<void()>& measurement);

  observe::Metrics& metrics_;
  const std::string group_;
  std::vector<std::string> consumed_, destinations_;
  store::OutboxMeasure last_;
  Clock::time_point records_again_{}, letters_again_{};
};

}  // namespace hapax::outbox
