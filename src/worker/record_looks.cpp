#include "worker/record_looks.hpp"

#include <utility>

#include "store/message/source.hpp"

namespace hapax::worker {
namespace {

using Kind = kafka::PartitionError::Kind;

// The log has changed, so its offsets are asked for again after this time.
constexpr std::chrono::milliseconds kStartAgain{500};

}  // namespace

RecordLooks::RecordLooks(const Partitions& partitions, Fetches& fetches, KeeperInterface& keeper,
                         Now now)
    : partitions_(partitions), fetches_(fetches), keeper_(keeper), now_(std::move(now)) {}

void RecordLooks::begin(const LookWanted& wanted) {
  if (is_current(partitions_, wanted.partition)) fetches_.look(*wanted.partition, wanted.record);
}

std::shared_ptr<Partition> RecordLooks::find(const TopicPartition& id) const {
  const auto found = partitions_.find(id);
  const bool looks =
      found != partitions_.end() && !found->second->over() && fetches_.looks(*found->second);
  return looks ? found->second : nullptr;
}

void RecordLooks::serve(const kafka::Record& record) {
  const Message& message = record.message();
  const auto partition = find({std::string(message.topic()), message.partition()});
  if (!partition) return;
  const ReadRecord wanted = *partition->polling.looks_for;
  if (message.offset() < wanted.offset) return;
  std::optional<ReadRecord> found;
  if (message.offset() == wanted.offset)
    found = ReadRecord{wanted.generation, wanted.offset, store::timestamp_ms(message), 0};
  answer(partition, found);
}

void RecordLooks::serve(const kafka::EndOfPartition& end) {
  if (const auto partition = find(end.partition)) answer(partition, std::nullopt);
}

bool RecordLooks::serve(const kafka::PartitionError& error) {
  const auto& [topic, number] = error.partition;
  bool is_of_look = false;
  for (const auto& [id, partition] : partitions_) {
    if (id.first != topic || (number >= 0 && id.second != number) || !find(id)) continue;
    is_of_look = true;
    switch (error.kind) {
      case Kind::refused:
        partition->delayed(error.text);
        fetches_.refused(*partition, error.text);
        break;
      case Kind::gone:
      case Kind::out_of_range: start_again(partition); break;
      case Kind::unreadable:
      case Kind::unreadable_headers: answer(partition, std::nullopt);
    }
  }
  return is_of_look && number >= 0;
}

void RecordLooks::answer(const std::shared_ptr<Partition>& partition,
                         std::optional<ReadRecord> found) {
  partition->handover.look = RecordLook{*partition->polling.looks_for, found, now_()};
  partition->polling.refused.clear();
  fetches_.stop(*partition);
  keeper_.acquire({partition}, {});
}

void RecordLooks::start_again(const std::shared_ptr<Partition>& partition) {
  partition->polling.refused.clear();
  fetches_.stop(*partition);
  keeper_.acquire({partition}, kStartAgain);
}

}  // namespace hapax::worker
