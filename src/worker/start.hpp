// Where a partition starts: Kafka's committed offset and PostgreSQL's checkpoint held against each
// other. A table in code; when the facts do not add up it halts and says which facts.
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
  std::int64_t read_below = 0;                  // what was read of it already
  std::string cluster_id;
  std::string topic_id;  // empty: this librdkafka cannot tell
  // PostgreSQL's side
  std::optional<store::CheckpointRow> row;
  std::string store_id;
  std::optional<store::WalPosition> wal;       // where it is
  std::optional<store::WalPosition> seen_wal;  // where this process saw it before
  store::Doubt doubt;
  // the configuration's
  std::string key_spec;
  std::optional<config::Repeat> repeat;  // of a route that calls to the outside
  bool initial_latest = false;           // where a partition starts for the very first time
  bool earliest_when_out_of_range = false;
  bool key_may_be_coordinates = false;
  std::string scope;
  std::vector<store::KnownLog> known_logs;  // of the partition
  std::optional<RecordLook> look;           // for the log's number
};

struct StartAt {
  std::int64_t offset = 0;
  bool first = false;    // by kafka.initial; Kafka's offset tells that nothing is settled yet
  std::int64_t gap = 0;  // offsets that Kafka deleted before they were processed
  store::Jump jump = store::Jump::none;  // why it is not simply the checkpoint
  std::int32_t generation = 1;
  bool learns_log = false;       // others must get to know that number
  std::int64_t guard_below = 0;  // what is below and unknown halts (guarantees I8)
  std::int64_t doubt_below = 0;  // calls for what is below may have been forgotten
  bool operator==(const StartAt&) const = default;
};

struct StartHalt {
  std::string reason;
  std::string detail;
  std::int32_t generation = 0;   // 0: the checkpoint's
  bool is_of_short_log = false;  // a broker that does not lead any more may say the same
  std::int64_t asks_below = 0;   // tail_in_doubt: an operator is asked about calls below
  std::int64_t asks_run = 0;     // and this run had committed Kafka's offset; 0: none
};

// Not decided: the record that another group read last must be looked at first (log_number.hpp).
struct StartLook {
  ReadRecord record;
};

std::variant<StartAt, StartHalt, StartLook> decide_start(const StartFacts& facts);

// The records that the start reads again, ascending: of those that this process has read before,
// and the last one below the checkpoint. None that was read before an operator decided
// `same_topic`. Pure.
std::vector<ReadRecord> read_again(const StartFacts& facts, const StartAt& at,
                                   std::vector<ReadRecord> before);

// The calls in doubt, to be written: nothing if none was in doubt, and none is. Pure.
std::optional<std::int64_t> doubt_of(const StartFacts& facts, const StartAt& at);

// What PostgreSQL is told of a start that was taken under `epoch`. Pure.
store::AgreedStart agreed_start(const StartFacts& facts, const StartAt& at, std::int64_t epoch);

// What Kafka's offset tells of a first start: see kafka::Provenance::first. Pure.
std::int32_t first_generation(const StartFacts& facts);

// When Kafka gets the start's offset. If its own leads a start to the checkpoint, it gets none: the
// checkpoints bring it. Else it gets the start's before anything runs. If it kept its own, the next
// start would follow that once more. Messages that took effect would run again, or messages that
// never ran would be left out.
enum class KafkaLearns {
  with_checkpoints,
  before_postgresql,  // a worker that dies in between leaves the decision in PostgreSQL
  after_postgresql,   // a worker that dies in between leaves Kafka's offset, which leads here
};

// Pure.
KafkaLearns when_kafka_learns(const StartFacts& facts, const StartAt& at);

// One more than the highest offset that an owner before may have settled, or the start if none has.
// If the last owner did not leave cleanly, it is the end of the log. Under another key spec what
// was settled beyond the checkpoint would run again, so a clean leave must not hide it.
std::int64_t settled_before(const StartFacts& facts, const StartAt& at);

// Whether the last owner wrote a checkpoint after `facts` were asked for. Then the start is decided
// again: on a route whose key is the position, that checkpoint has removed what is settled. Pure.
bool is_outdated(const StartFacts& facts, const store::Taken& taken);

}  // namespace hapax::worker
