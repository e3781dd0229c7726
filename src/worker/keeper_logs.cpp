// Whether each partition that runs still reads the log that it began with. Kafka forgets the
// group's offsets when a topic is deleted. librdkafka goes on in a topic that is made again under
// the same name. It reports nothing if it was disconnected meanwhile.
#include <algorithm>
#include <optional>
#include <utility>

#include "worker/keeper.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kBetweenLooks{5000};
constexpr milliseconds kLogsLookTimeout{2000};
// Longer ago, the process may have stood still since, and the topic been made again meanwhile.
constexpr milliseconds kLookHolds{1000};

// Without an answer the group's offsets tell alone: those of a topic that is gone are gone, too.
std::string id_or_nothing(const kafka::Consumer& consumer, const std::string& topic,
                          steady_clock::time_point until) {
  const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
  try {
    return consumer.topic_id(topic, std::max(left, milliseconds(1)));
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

bool Keeper::logs_looked_at(steady_clock::time_point since) {
  if (looked_at_logs_.load() > std::max(since, steady_clock::now() - kLookHolds)) return true;
  const std::lock_guard lock(mutex_);
  look_wanted_ = true;
  woken_.notify_all();
  return false;
}

// Without topic ids only the group's offsets tell, so this worker commits none before a look has
// shown that they are still there.
void Keeper::look_at_logs() {
  const auto now = steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(look_wanted_, false) && now < look_at_logs_) return;
  }
  look_at_logs_ = now + kBetweenLooks;
  try {
    for (const auto& partition : with_another_log(held(), kLogsLookTimeout))
      notices_.post(LogDoubted{partition});
    looked_at_logs_ = now;
  } catch (const std::exception&) {
    // Kafka is away, and the poll thread reports that. The next look comes soon.
  }
}

std::vector<std::shared_ptr<Partition>> Keeper::with_another_log(
    const std::vector<std::shared_ptr<Partition>>& partitions, milliseconds timeout) const {
  std::vector<std::shared_ptr<Partition>> looked;
  std::vector<TopicPartition> ids;
  for (const auto& partition : partitions) {
    if (partition->committed() < 0 && !partition->beginning().has_kafka_offset) continue;
    looked.push_back(partition);
    ids.push_back(partition->id());
  }
  if (ids.empty()) return {};
  const auto until = steady_clock::now() + timeout;
  const auto committed = consumer_.committed(ids, timeout);
  std::map<std::string, std::string> topics;
  std::optional<ClientBroken> broken;
  std::erase_if(looked, [&](const std::shared_ptr<Partition>& partition) {
    const std::string& topic = partition->id().first;
    const auto [id, is_new] = topics.try_emplace(topic);
    if (is_new) id->second = id_or_nothing(consumer_, topic, until);
    const std::string& began = partition->beginning().topic_id;
    const auto found = committed.find(partition->id());
    const bool lost = found != committed.end() && !found->second.offset;
    const bool another = !began.empty() && !id->second.empty() && began != id->second;
    if (another && kafka::is_broken_by_another_topic_id()) broken = ClientBroken{topic};
    return !lost && !another;
  });
  if (broken) notices_.post(*broken);
  return looked;
}

}  // namespace hapax::worker
