#include "worker/log_watch.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kBetweenLooks{5000};
constexpr milliseconds kLookTimeout{2000};
// A look holds only so long. The process may have stood still since, and the topic may have been
// made again meanwhile.
constexpr milliseconds kLookHolds{1000};

// Without an answer only the group's offsets tell: if a topic is gone, its offsets are gone, too.
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

// Without topic ids only the group's offsets tell whether a topic was made again. So this worker
// commits none before a look has shown that they are still there.
bool LogWatch::looked_at(steady_clock::time_point since) {
  const auto began = looked_.load();  // written last
  const auto answered = answered_.load();
  if (began > since && answered > steady_clock::now() - kLookHolds &&
      answered - began < kLookTimeout + kLookHolds)
    return true;
  wanted_ = true;
  return false;
}

void LogWatch::look() {
  const auto now = steady_clock::now();
  if (!wanted_.exchange(false) && now < next_) return;
  next_ = now + kBetweenLooks;
  try {
    for (const auto& partition : with_another_log(held_.all(), kLookTimeout))
      notices_.post(LogDoubted{partition});
    answered_ = steady_clock::now();
    looked_ = now;
  } catch (const std::exception&) {
    // Kafka is away, and the poll thread reports that. The next look comes soon.
  }
}

HeldPartitions::List LogWatch::with_another_log(const HeldPartitions::List& partitions,
                                                milliseconds timeout) const {
  HeldPartitions::List looked;
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
