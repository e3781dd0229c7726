#include "worker/partition_errors.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "observe/log.hpp"

namespace hapax::worker {
namespace {

using Kind = kafka::PartitionError::Kind;
namespace log = observe::log;

// The time for the client to learn who leads.
constexpr std::chrono::seconds kAskAgainAfter{3};
constexpr std::chrono::minutes kAskAgainOnceIn{1};

void log_error(const kafka::PartitionError& error) {
  log::warning("partition_error",
               {{"topic", error.partition.first},
                {"partition", error.partition.second},
                {"error", error.name}},
               error.text);
}

std::string detail_of_unreadable(const kafka::PartitionError& error, std::int64_t offset) {
  const bool of_headers = error.kind == Kind::unreadable_headers;
  const std::string detail = "librdkafka cannot read " +
                             std::string(of_headers ? "the headers of " : "") +
                             "what stands at offset " + std::to_string(offset);
  if (of_headers) return detail + " (" + error.text + "); to skip it leaves out this message alone";
  return detail + ", in a record batch that begins at " + std::to_string(error.offset) + " (" +
         error.name + ": " + error.text + "); to skip it leaves out all of that batch";
}

}  // namespace

PartitionErrors::PartitionErrors(const std::string& worker_name, bool earliest_when_out_of_range,
                                 const Partitions& partitions, Assignment& assignment,
                                 Fetches& fetches, Now now)
    : worker_name_(worker_name),
      earliest_when_out_of_range_(earliest_when_out_of_range),
      partitions_(partitions),
      assignment_(assignment),
      fetches_(fetches),
      now_(std::move(now)) {}

void PartitionErrors::serve(const kafka::PartitionError& error) {
  if (error.kind == Kind::gone || error.kind == Kind::refused) return serve_unread(error);
  const auto partition = find_running(partitions_, error.partition);
  // If the partition has not started again yet, the error is of the old fetch.
  if (!partition) return log_error(error);
  if (error.kind == Kind::out_of_range && asks_again(partition, error.text)) return;
  // The error came only because a record below the start is read again. That record cannot be
  // compared.
  auto& before = partition->handover.read_before;
  if (error.offset >= 0 && error.offset < partition->beginning().offset && !before.empty()) {
    before.clear();
    return fetches_.started(partition->id());
  }
  // librdkafka names the first offset of a record batch. That message may be settled already.
  const std::int64_t offset = std::max(error.offset, partition->progress().next);
  const bool unreadable = error.kind != Kind::out_of_range;
  if (unreadable && partition->beginning().known.unreadable.contains(offset)) {
    log::warning("unreadable_skipped",
                 {{"topic", error.partition.first},
                  {"partition", error.partition.second},
                  {"offset", offset}},
                 "what cannot be read here is left out, as an operator decided");
    return;
  }
  store::Halt halt = halt_of(*partition, worker_name_);
  halt.reason = unreadable ? "unreadable" : "offset_out_of_range";
  halt.detail = unreadable ? detail_of_unreadable(error, offset) : error.text;
  if (error.offset >= 0) halt.offset = unreadable ? offset : error.offset;
  // At once, because librdkafka goes on after that offset.
  assignment_.halt({.partition = partition, .halt = halt});
}

// If a topic is gone, another may come under its name, and librdkafka would go on in that one at
// the old offset. So the partition starts again, and its start compares the facts. If Kafka refuses
// a partition, hapax asks for it again and again, until Kafka delivers it.
void PartitionErrors::serve_unread(const kafka::PartitionError& error) {
  log_error(error);
  const auto& [topic, number] = error.partition;
  std::vector<std::shared_ptr<Partition>> meant;
  for (const auto& [id, partition] : partitions_)
    if (id.first == topic && (number < 0 || id.second == number) && !partition->over() &&
        partition->polling.started)
      meant.push_back(partition);
  for (const auto& partition : meant) {
    if (error.kind == Kind::gone) {
      doubt(partition);
    } else {
      fetches_.refused(*partition, error.text);
    }
  }
}

// Called before any more of the partition is received.
void PartitionErrors::doubt(const std::shared_ptr<Partition>& partition) {
  const TopicPartition& id = partition->id();
  log::warning(
      "log_doubted",
      {{"topic", id.first}, {"partition", id.second}, {"offset", partition->progress().next}},
      "the topic may have been deleted, and made again: the partition starts again, which "
      "looks whether its log is still the one that was read");
  doubted_.insert(id);
  assignment_.start_again(partition, {});
}

void PartitionErrors::serve(const LogDoubted& doubted) {
  if (is_current(partitions_, doubted.partition)) doubt(doubted.partition);
}

// A broker that stood still may believe that it leads, and lack what its followers have. So the
// partition starts again. Its start asks for the range of the log, and compares it with what was
// read. False if that was done just now. With `earliest`, retention may be ahead of it once more.
bool PartitionErrors::asks_again(const std::shared_ptr<Partition>& partition,
                                 const std::string& error) {
  const TopicPartition& id = partition->id();
  const auto now = now_();
  const auto [last, is_first] = asked_again_.try_emplace(id, now);
  if (!is_first && !earliest_when_out_of_range_ && now - last->second < kAskAgainOnceIn)
    return false;
  last->second = now;
  log::warning("out_of_range",
               {{"topic", id.first},
                {"partition", id.second},
                {"offset", partition->progress().next},
                {"error", error}},
               "a broker answered that its log does not hold this offset; asking again, and "
               "starting from the checkpoint if it does");
  assignment_.start_again(partition, kAskAgainAfter);
  return true;
}

// The log may have lost its end and grown again before hapax asked for its end. Then other records
// have the old offsets, and those below the checkpoint would never be read.
bool PartitionErrors::log_was_rewritten(const std::shared_ptr<Partition>& partition,
                                        const kafka::Record& record) {
  const Message& message = record.message();
  auto& before = partition->handover.read_before;
  if (before.empty()) doubted_.erase(partition->id());  // no record was read that could be compared
  if (before.empty() || message.offset() < before.front().offset) return false;
  // Compaction may have removed the record. But if the log is in doubt anyway, hapax does not
  // guess: in another log, a transaction marker may have that offset.
  const bool doubted = doubted_.erase(partition->id()) > 0 || partition->handover.short_since;
  const auto is_another = [&](const ReadRecord& read) {
    if (message.offset() > read.offset) return doubted;
    return read.timestamp_ms != store::timestamp_ms(message) ||
           (read.bytes != 0 && read.bytes != record.bytes());
  };
  const auto passed = std::ranges::upper_bound(before, message.offset(), {}, &ReadRecord::offset);
  // If the last record is there, those below it were compacted.
  const bool is_there = passed != before.begin() && std::prev(passed)->offset == message.offset() &&
                        !is_another(*std::prev(passed));
  const auto changed = is_there ? passed : std::find_if(before.begin(), passed, is_another);
  if (changed == passed) {
    before.erase(before.begin(), passed);
    return false;
  }
  store::Halt halt = halt_of(*partition, worker_name_);
  halt.reason = "offset_above_end";
  halt.offset = message.offset();
  halt.detail = "at offset " + std::to_string(changed->offset) +
                " the record that was read before is not there any more. Kafka lost the end of the "
                "log, or the topic was made again, and producers wrote on. What they wrote below " +
                std::to_string(partition->beginning().offset) +
                ", at which this worker went on, was left out";
  assignment_.halt({.partition = partition, .halt = halt});
  return true;
}

}  // namespace hapax::worker
