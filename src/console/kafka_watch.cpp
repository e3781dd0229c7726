#include "console/kafka_watch.hpp"

#include <exception>
#include <utility>

#include "observe/without_signals.hpp"

namespace hapax::console {

using std::chrono::steady_clock;

KafkaWatch::KafkaWatch(Ask ask)
    : ask_(std::move(ask)), thread_(observe::without_signals([this] { work(); })) {}

KafkaWatch::~KafkaWatch() {
  {
    const sync::Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<KafkaWatch::Told> KafkaWatch::told(app::KafkaSide partitions) {
  const sync::Lock lock(mutex_);
  wanted_ = std::move(partitions);
  changed_.notify_all();
  if (!last_) return std::nullopt;
  return Told{*last_,
              std::chrono::duration_cast<std::chrono::seconds>(steady_clock::now() - last_at_)};
}

void KafkaWatch::work() {
  for (;;) {
    app::KafkaSide side;
    {
      sync::Lock lock(mutex_);
      while (!stopping_ && !wanted_) changed_.wait(lock.waitable());
      if (stopping_) return;
      side = std::exchange(wanted_, std::nullopt).value();
    }
    try {
      ask_(side);
    } catch (const std::exception& error) {
      side.away = error.what();
    }
    sync::Lock lock(mutex_);
    last_ = std::move(side);
    last_at_ = steady_clock::now();
    const auto until = last_at_ + kPause;
    while (!stopping_ && steady_clock::now() < until) changed_.wait_until(lock.waitable(), until);
  }
}

}  // namespace hapax::console
