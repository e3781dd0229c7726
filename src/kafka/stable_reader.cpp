#include "kafka/stable_reader.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "kafka/transaction_error.hpp"

namespace hapax::kafka {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kAnswer = 5s;
constexpr auto kAnswerSoon = 1s;  // to a question that is asked again and again
constexpr auto kLookAgain = 5ms;  // doubled
constexpr auto kLookRarely = 100ms;
constexpr auto kLong = 30s;
constexpr auto kDoubtAfter = 1s;  // then it asks, too, whether the topic still has it all
// A broker that has just started may not know yet how far its log was acknowledged.
constexpr auto kGoneForGood = 10s;

// librdkafka asks by itself which broker has the offsets of a group. If Kafka refuses to tell,
// questions about the group only time out, and the refusal is among the consumer's events. "":
// none.
std::string refusal_of_group(Consumer& consumer) {
  for (int i = 0; i < 10; ++i) {
    const Event event = consumer.poll(10ms);
    const auto* const error = std::get_if<PartitionError>(&event);
    if (error != nullptr && error->kind == PartitionError::Kind::refused) return "; " + error->text;
  }
  return {};
}

Properties with_group(Properties properties, const std::string& group) {
  properties["group.id"] = group;
  return properties;
}

}  // namespace

StableReader::StableReader(Properties connecting, std::string topic, std::string group,
                           std::stop_token stop)
    : connecting_(std::move(connecting)),
      topic_(std::move(topic)),
      group_(std::move(group)),
      stop_(std::move(stop)),
      stable_(std::make_unique<Client>(with_group(connecting_, group_), "read_committed")) {}

StableReader::~StableReader() = default;

StableReader::Client& StableReader::all() {
  if (!all_) all_ = std::make_unique<Client>(with_group(connecting_, group_), "read_uncommitted");
  return *all_;
}

Committed StableReader::committed() const {
  const TopicPartition place(topic_, 0);
  std::map<TopicPartition, Committed> found;
  std::map<TopicPartition, std::string> refusals;
  try {
    found = stable_->consumer.committed({place}, kAnswer, &refusals);
  } catch (const std::runtime_error& error) {
    throw TransactionError("the marker of the group " + group_ + ": " + error.what() +
                               refusal_of_group(stable_->consumer),
                           TransactionError::Kind::failed);
  }
  const auto committed = found.find(place);
  if (committed == found.end())
    throw TransactionError("the marker of the group " + group_ + ": " + refusals[place],
                           TransactionError::Kind::failed);
  return committed->second;
}

bool StableReader::do_answer(const Ends& partitions) const {
  return ends_of(*stable_, partitions).size() == partitions.size();
}

// Nothing if no broker tells.
std::optional<std::int32_t> StableReader::partition_count(const Client& client) const {
  try {
    const int count = client.consumer.partition_count(topic_, kAnswerSoon);
    trouble_.clear();
    return count;
  } catch (const std::runtime_error& error) {
    trouble_ = error.what();
    return std::nullopt;
  }
}

// Of those that answer.
Ends StableReader::ends_of(const Client& client, const Ends& wanted) const {
  std::vector<TopicPartition> partitions;
  for (const auto& [partition, end] : wanted) partitions.emplace_back(topic_, partition);
  Ends found;
  try {
    for (const auto& [place, end] : client.consumer.ends(partitions, kAnswerSoon))
      found[place.second] = end;
  } catch (const std::runtime_error&) {
    // No broker answers, or none leads: the caller asks again.
  }
  // What the client knows of the leaders may be old. The next look knows more.
  if (found.size() < wanted.size()) partition_count(client);
  return found;
}

Ends StableReader::written_ends(std::int32_t count, const Delayed& delayed) {
  Ends any;
  for (std::int32_t partition = 0; partition < count; ++partition) any[partition] = 0;
  return await_ends(all(), any, delayed);
}

void StableReader::await_passed(const Ends& ends, const Delayed& delayed) {
  await_ends(*stable_, ends, delayed);
}

Ends StableReader::await_ends(const Client& client, const Ends& wanted, const Delayed& delayed) {
  const auto since = steady_clock::now();
  auto not_gone_at = since;
  bool told = false;
  for (milliseconds pause = kLookAgain;; pause = std::min<milliseconds>(pause * 2, kLookRarely)) {
    Ends found = ends_of(client, wanted);
    if (std::ranges::all_of(wanted, [&](const auto& end) {
          const auto reached = found.find(end.first);
          return reached != found.end() && reached->second >= end.second;
        }))
      return found;
    if (stop_.stop_requested()) throw TransactionError("stopped", TransactionError::Kind::failed);
    const auto now = steady_clock::now();
    if (!told && now - since > kLong) {
      delayed(trouble_);
      told = true;
    }
    if (now - since > kDoubtAfter) {
      const std::string gone = what_is_gone(wanted);
      if (gone.empty()) not_gone_at = now;
      if (now - not_gone_at > kGoneForGood)
        throw TransactionError(gone, TransactionError::Kind::lost);
    }
    std::this_thread::sleep_for(pause);
  }
}

// "" if nothing is, as far as Kafka tells.
std::string StableReader::what_is_gone(const Ends& wanted) {
  const auto count = partition_count(all());
  if (!count) return {};
  if (*count == 0) return "Kafka has no such topic (any more)";
  const Ends written = ends_of(all(), wanted);
  for (const auto& [partition, end] : wanted) {
    const std::string name = "partition " + std::to_string(partition);
    if (partition >= *count) return name + " is gone";
    if (const auto found = written.find(partition); found != written.end() && found->second < end)
      return name + " had records up to offset " + std::to_string(end) + " and ends at " +
             std::to_string(found->second);
  }
  return {};
}

}  // namespace hapax::kafka
