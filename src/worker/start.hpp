// Decides at which offset a partition starts, by comparing Kafka's committed offset with
// PostgreSQL's checkpoint. It is a table in code. If the facts contradict each other, the partition
// halts, and the reason names the facts.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/config.hpp"
#include "kafka/provenance.hpp"
#include "store/worker/checkpoints.hpp"
#include "store/worker/doubts.hpp"
#include "store/worker/logs.hpp"
#include "store/worker/wal_position.hpp"
#include "worker/read_record.hpp"

namespace hapax::worker {

struct StartFacts {
  // Kafka's side
  std::optional<std::int64_t> committed;
  std::optional<kafka::Provenance> provenance;  // of that commit; nothing: not a commit of hapax
  std::int64_t low = 0;                         // the oldest offset in the log
  std::int64_t high = 0;                        // one more than the newest
  std::int64_t read_below = 0;                  // this worker has read the log up to here
  std::string cluster_id;
  std::string topic_id;  // empty: this librdkafka cannot tell
  // PostgreSQL's side
  std::optional<store::CheckpointRow> row;
  std::string store_id;
  std::optional<store::WalPosition> wal;        // PostgreSQL's position now
  std::optional<store::WalPosition> began_wal;  // the beginning of its run of now, or later
  std::optional<store::WalPosition> seen_wal;   // the last one that this process saw
  bool was_seen_before = false;                 // in an earlier run of PostgreSQL
  std::optional<std::int64_t> left;             // SeenWal::left
  store::Doubt doubt;
  // the configuration's
  std::string key_spec;
  std::optional<config::Repeat> repeat;  // of a route that calls to the outside
  bool initial_latest = false;           // the very first start is at the log's end
  bool earliest_when_out_of_range = false;
  bool key_may_be_coordinates = false;
  std::string scope;
  std::vector<store::KnownLog> known_logs;  // of the partition
  std::optional<RecordLook> look;           // for the log's number
};

struct StartAt {
  std::int64_t offset = 0;
  bool first = false;    // by kafka.initial; Kafka's offset tells that nothing is settled yet
  std::int64_t gap = 0;  // number of offsets that Kafka deleted before they were processed
  store::Jump jump = store::Jump::none;  // why it is not the checkpoint
  std::int32_t generation = 1;
  bool learns_log = false;       // the number must be written for other groups
  std::int64_t guard_below = 0;  // an unknown message below this halts (guarantees I8)
  std::int64_t doubt_below = 0;  // PostgreSQL may have forgotten calls for messages below this
  bool operator==(const StartAt&) const = default;
};

struct StartHalt {
  std::string reason;
  std::string detail;
  std::int32_t generation = 0;   // 0: the checkpoint's
  bool is_of_short_log = false;  // a broker that no longer leads may report the same
  std::int64_t asks_below = 0;   // tail_in_doubt: an operator is asked about calls below
  std::int64_t asks_run = 0;     // the run that had committed Kafka's offset by then; 0: none
};

// The start is not decided. First the worker must look at the record that another group read last
// (log_number.hpp).
struct StartLook {
  ReadRecord record;
};

std::variant<StartAt, StartHalt, StartLook> decide_start(const StartFacts& facts);

// The records that the start reads again, ascending: records that this process has read before, and
// the last one below the checkpoint. Records that were read before an operator decided `same_topic`
// are left out. Pure.
std::vector<ReadRecord> read_again(const StartFacts& facts, const StartAt& at,
                                   std::vector<ReadRecord> before);

// The offset below which calls are in doubt, to be written. Nothing if none was and none is. Pure.
std::optional<std::int64_t> doubt_of(const StartFacts& facts, const StartAt& at);

// What is written to PostgreSQL about a start that was taken under `epoch`. Pure.
store::AgreedStart agreed_start(const StartFacts& facts, const StartAt& at, std::int64_t epoch);

// What goes into Kafka's offset about a first start, see kafka::Provenance::first. Pure.
std::int32_t first_generation(const StartFacts& facts);

// When Kafka gets the start's offset. If Kafka's own offset leads a start to the checkpoint, Kafka
// gets it with later checkpoints. Otherwise Kafka gets it before anything runs. If Kafka kept its
// own, the next start would follow that once more. Then messages that took effect would run again,
// or messages that never ran would be left out.
enum class KafkaLearns {
  with_checkpoints,
  before_postgresql,  // a worker that dies in between leaves the decision in PostgreSQL
  after_postgresql,   // a worker that dies in between leaves Kafka's offset, which leads here
};

// Pure.
KafkaLearns when_kafka_learns(const StartFacts& facts, const StartAt& at);

// One more than the highest offset that an earlier owner may have settled, or the start if none
// has. If the last owner did not leave cleanly, it is the end of the log. The next clean leave
// records at least this. Otherwise a start under another key spec would not notice messages that
// were settled beyond the checkpoint, and would run them again.
std::int64_t settled_before(const StartFacts& facts, const StartAt& at);

// Whether the last owner wrote a checkpoint after `facts` were read. Then the start is decided
// again. If the route's key is the position, that checkpoint has removed the rows of settled
// offsets. Pure.
bool is_outdated(const StartFacts& facts, const store::Taken& taken);

}  // namespace hapax::worker
