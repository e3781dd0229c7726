// What the consumer reports that is no message.
#include <algorithm>

#include "observe/log.hpp"
#include "worker/worker.hpp"

namespace hapax::worker {
namespace {

namespace log = observe::log;

// For the client to hear who leads.
constexpr std::chrono::seconds kAskAgainAfter{3};
constexpr std::chrono::minutes kAskAgainOnceIn{1};

}  // namespace

// An error that stands at an offset halts before anything behind it is received, so that the
// watermark cannot pass it.
void Worker::serve(const kafka::PartitionError& error) {
  using Kind = kafka::PartitionError::Kind;
  if (error.kind == Kind::gone || error.kind == Kind::refused) return serve_unread(error);
  const auto found = partitions_.find(error.partition);
  // Of one that has not started again yet it is the old fetch's.
  if (found == partitions_.end() || found->second->over() || !found->second->polling.started) {
    log::warning("partition_error",
                 {{"topic", error.partition.first},
                  {"partition", error.partition.second},
                  {"error", error.name}},
                 error.text);
    return;
  }
  const std::shared_ptr<Partition> partition = found->second;
  if (error.kind == Kind::out_of_range && asks_again(partition, error.text)) return;
  const Beginning& beginning = partition->beginning();
  // librdkafka names the first offset of a record batch, which may be settled already.
  const std::int64_t offset = std::max(error.offset, partition->progress().next);
  const bool of_headers = error.kind == Kind::unreadable_headers;
  const bool unreadable = of_headers || error.kind == Kind::unreadable;
  if (unreadable && beginning.ahead.unreadable.contains(offset)) {
    log::warning("unreadable_skipped",
                 {{"topic", error.partition.first},
                  {"partition", error.partition.second},
                  {"offset", offset}},
                 "what cannot be read here is left out, as an operator decided");
    return;
  }
  store::Halt halt{0,
                   error.partition.first,
                   error.partition.second,
                   false,
                   beginning.generation,
                   {},
                   "offset_out_of_range",
                   error.text,
                   {},
                   config_.worker.name};
  if (error.offset >= 0) halt.offset = unreadable ? offset : error.offset;
  if (unreadable) {
    halt.reason = "unreadable";
    halt.detail = "librdkafka cannot read " + std::string(of_headers ? "the headers of " : "") +
                  "what stands at offset " + std::to_string(offset);
    halt.detail += of_headers ? " (" + error.text + "); to skip it leaves out this message alone"
                              : ", in a record batch that begins at " +
                                    std::to_string(error.offset) + " (" + error.name + ": " +
                                    error.text + "); to skip it leaves out all of that batch";
  }
  serve(HaltWanted{partition, halt, false});  // now: librdkafka goes on behind it
}

// If a topic is gone, another may come under its name, and librdkafka would go on in that one at
// the old offset. So the partition starts again, and its start compares the facts. A partition
// that Kafka refuses is asked for again and again, until something comes of it.
void Worker::serve_unread(const kafka::PartitionError& error) {
  const auto& [topic, number] = error.partition;
  log::warning("partition_error", {{"topic", topic}, {"partition", number}, {"error", error.name}},
               error.text);
  std::vector<std::shared_ptr<Partition>> meant;
  for (const auto& [id, partition] : partitions_)
    if (id.first == topic && (number < 0 || id.second == number) && !partition->over() &&
        partition->polling.started)
      meant.push_back(partition);
  for (const auto& partition : meant) {
    if (error.kind == kafka::PartitionError::Kind::gone) {
      doubt(partition);
    } else {
      fetches_.refused(*partition, error.text);
    }
  }
}

// Before anything more of the partition is taken.
void Worker::doubt(const std::shared_ptr<Partition>& partition) {
  const TopicPartition id = partition->id();
  const std::int64_t reached = partition->progress().next;
  log::warning("log_doubted", {{"topic", id.first}, {"partition", id.second}, {"offset", reached}},
               "the topic may have been deleted, and made again: the partition starts again, which "
               "looks whether its log is still the one that was read");
  stop_partition(partition);
  take_again(id, {}, reached);
}

void Worker::serve(const LogDoubted& doubted) {
  if (is_current(partitions_, doubted.partition)) doubt(doubted.partition);
}

// A broker that only believes that it leads (it stood still) may lack what its followers have: the
// partition starts again, which asks for the range of the log, also against what was read of it.
// False where that was done just now; with `earliest` retention may well be ahead of it again.
bool Worker::asks_again(const std::shared_ptr<Partition>& partition, const std::string& error) {
  const TopicPartition id = partition->id();
  const auto now = Clock::now();
  const auto [last, is_first] = asked_again_.try_emplace(id, now);
  const bool goes_on = config_.kafka.out_of_range == config::OutOfRange::earliest;
  if (!is_first && !goes_on && now - last->second < kAskAgainOnceIn) return false;
  last->second = now;
  const std::int64_t reached = partition->progress().next;
  log::warning(
      "out_of_range",
      {{"topic", id.first}, {"partition", id.second}, {"offset", reached}, {"error", error}},
      "a broker answered that its log does not hold this offset; asking again, and starting "
      "from the checkpoint if it does");
  stop_partition(partition);
  take_again(id, kAskAgainAfter, reached);
  return true;
}

// Where the log had lost its tail, and had grown again beyond what was read of it when it was
// asked, other records stand at the old offsets, and below the checkpoint nobody reads them.
bool Worker::log_was_rewritten(const std::shared_ptr<Partition>& partition,
                               const kafka::Record& record) {
  const Message& message = record.message();
  const std::optional<ReadRecord>& before = partition->read_before;
  if (!before || message.offset() < before->offset) return false;
  const bool same = message.offset() > before->offset ||  // compacted: nobody can tell
                    *before == ReadRecord{before->generation, message.offset(),
                                          message.timestamp_ms(), record.bytes()};
  partition->read_before.reset();
  if (same) return false;
  store::Halt halt{0,
                   std::string(message.topic()),
                   message.partition(),
                   false,
                   partition->beginning().generation,
                   message.offset(),
                   "offset_above_end",
                   "at offset " + std::to_string(message.offset()) +
                       " stands another record than this worker read there: Kafka lost the end of "
                       "the log, and wrote on. What it wrote below " +
                       std::to_string(partition->beginning().offset) +
                       ", at which this worker went on, was left out",
                   {},
                   config_.worker.name};
  serve(HaltWanted{partition, halt, false});
  return true;
}

void Worker::on_committed(const std::vector<kafka::Commit>& commits, kafka::CommitResult result,
                          const std::string& error) {
  offset_commits_.answered(commits, result, error);
  if (result == kafka::CommitResult::fatal) kafka_health_.failed({true, "commit", error});
}

void Worker::on_client_error(const kafka::ClientError& error) { kafka_health_.failed(error); }

}  // namespace hapax::worker
