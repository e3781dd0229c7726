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
  const auto found = partitions_.find(error.partition);
  // Of one that has not started again yet it is the old fetch's.
  if (error.kind == Kind::no_topic || found == partitions_.end() || found->second->over() ||
      !found->second->polling.started) {
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
  if (error.kind == Kind::unreadable && beginning.ahead.unreadable.contains(offset)) {
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
  if (error.offset >= 0) halt.offset = error.kind == Kind::unreadable ? offset : error.offset;
  if (error.kind == Kind::unreadable) {
    halt.reason = "unreadable";
    halt.detail = "librdkafka cannot read what stands at offset " + std::to_string(offset) +
                  ", in a record batch that begins at " + std::to_string(error.offset) + " (" +
                  error.name + ": " + error.text + "); to skip it leaves out all of that batch";
  }
  serve(HaltWanted{partition, halt, false});  // now: librdkafka goes on behind it
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
bool Worker::is_another_than_before(const std::shared_ptr<Partition>& partition,
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

void Worker::on_client_error(const kafka::ClientError& error) {
  if (error.fatal) {
    log::error("kafka_fatal", {{"error", error.name}}, error.text);
    health_.fatal("Kafka: " + error.text);
    fatal_ = true;
    return;
  }
  kafka_in_doubt_ = true;
  // Each attempt to connect fails with one more; that all are down is their consequence.
  if (error.text == kafka_error_) return;
  log::warning("kafka_error", {{"error", error.name}}, error.text);
  if (error.name != "_ALL_BROKERS_DOWN" || kafka_error_.empty()) kafka_error_ = error.text;
}

}  // namespace hapax::worker
