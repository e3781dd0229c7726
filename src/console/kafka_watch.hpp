// What Kafka last told of the group. A thread asks, because Kafka may be silent for long while
// PostgreSQL has answers; it asks only while an operator looks.
//
// Thread safety: told() may be called from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <optional>
#include <thread>

#include "inspect/group_in_kafka.hpp"
#include "sync/mutex.hpp"

namespace hapax::console {

class KafkaWatch {
 public:
  using Ask = std::function<void(app::KafkaSide&)>;

  // From the end of an answer to the next question.
  static constexpr std::chrono::seconds kPause{2};

  // `ask`: as app::ask_kafka(); called on the thread of this.
  explicit KafkaWatch(Ask ask);
  // Blocks: until a question that is being asked has its answer.
  ~KafkaWatch();
  KafkaWatch(const KafkaWatch&) = delete;
  KafkaWatch& operator=(const KafkaWatch&) = delete;

  struct Told {
    app::KafkaSide side;
    std::chrono::seconds age{0};
  };
  // The last answer; nothing: there is none yet. `partitions`: what the next question is about.
  std::optional<Told> told(app::KafkaSide partitions);

 private:
  void work();

  const Ask ask_;
  sync::Mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ HAPAX_GUARDED_BY(mutex_) = false;
  std::optional<app::KafkaSide> wanted_ HAPAX_GUARDED_BY(mutex_);
  std::optional<app::KafkaSide> last_ HAPAX_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point last_at_ HAPAX_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses the rest
};

}  // namespace hapax::console
