#include "worker/start.hpp"

#include <algorithm>

#include "worker/log_number.hpp"

namespace hapax::worker {
namespace {

using Start = std::variant<StartAt, StartHalt, StartLook>;
using store::Jump;

std::string text(std::int64_t offset) { return std::to_string(offset); }

StartAt initial(const StartFacts& facts) {
  return {facts.initial_latest ? facts.high : facts.low, true, 0, Jump::first_start};
}

// If the log no longer (or not yet) holds an offset, the start never moves it silently.
Start in_range(const StartFacts& facts, std::int64_t offset, const char* whose,
               Jump jump = Jump::none) {
  if (offset > facts.high)
    return StartHalt{"offset_above_end",
                     std::string(whose) + " is " + text(offset) + ", but the log ends at " +
                         text(facts.high) +
                         ". The topic was made again, an unclean leader election cut its tail, or "
                         "an operator set it above messages of an open transaction",
                     0, true};
  if (offset >= facts.low) return StartAt{offset, false, 0, jump};
  if (facts.earliest_when_out_of_range)
    return StartAt{facts.low, false, facts.low - offset, Jump::log_start};
  return StartHalt{"offset_out_of_range", std::string(whose) + " is " + text(offset) +
                                              ", but the log begins at " + text(facts.low) +
                                              ": Kafka deleted up to " + text(facts.low - offset) +
                                              " messages before they were processed"};
}

// If the cluster or the topic's id is another one, offsets mean other messages now.
std::optional<StartHalt> recreated(const StartFacts& facts) {
  const store::CheckpointRow& row = *facts.row;
  if (row.cluster_id && *row.cluster_id != facts.cluster_id)
    return StartHalt{"other_cluster", "the checkpoint belongs to cluster " + *row.cluster_id +
                                          ", this is cluster " + facts.cluster_id};
  if (row.topic_id && !facts.topic_id.empty() && *row.topic_id != facts.topic_id)
    return StartHalt{"topic_recreated", "the checkpoint belongs to topic id " + *row.topic_id +
                                            ", the topic has id " + facts.topic_id +
                                            " now: it was deleted and made again"};
  return std::nullopt;
}

// An owner with another key spec may have settled messages beyond the checkpoint. Under the new
// keys they would run again.
std::optional<StartHalt> key_spec_changed(const StartFacts& facts) {
  const store::CheckpointRow& row = *facts.row;
  if (row.accepts(facts.key_spec) || !row.next_offset) return std::nullopt;
  // A clean leave writes highest_settled, and the next agreed start removes it. The column `owner`
  // would not tell, because an owner that has taken the partition and not begun has settled
  // nothing.
  const bool drained = row.highest_settled && *row.highest_settled <= *row.next_offset;
  if (drained) return std::nullopt;
  return StartHalt{"key_spec_changed",
                   "the key, tenant or scope of this route was changed, and the last worker (" +
                       row.owner.value_or("left cleanly") +
                       ") had not finished all that it had begun: run the old configuration until "
                       "the partition is drained and stop it with SIGTERM"};
}

StartHalt checkpoint_missing(const StartFacts& facts) {
  return {"checkpoint_missing",
          "Kafka's offset " + text(*facts.committed) + " was committed by hapax on store " +
              facts.provenance->store_id + ", but store " + facts.store_id +
              " has no checkpoint for it. PostgreSQL lost its tables or its tail, was restored to "
              "before this partition's first start, or postgres.url names the wrong database"};
}

Start with_row(const StartFacts& facts, bool here, bool ours) {
  const store::CheckpointRow& row = *facts.row;
  const bool no_kafka = !facts.committed.has_value();
  if (!row.next_offset) {
    // Either a worker was killed between its commit to Kafka and its row, or an operator set the
    // offset. But if workers of this store had got further, PostgreSQL has lost all that came after
    // the taking. If workers of another store had, what took effect there did not take effect here.
    if (here && !(ours && facts.provenance->first)) return checkpoint_missing(facts);
    return no_kafka ? Start(initial(facts))
                    : in_range(facts, *facts.committed, "Kafka's offset", Jump::first_start);
  }
  if (ours) return in_range(facts, *row.next_offset, "the checkpoint");
  if (here)
    return StartHalt{"other_store",
                     "Kafka's offset " + text(*facts.committed) +
                         " was committed by hapax on store " + facts.provenance->store_id +
                         ", but this is store " + facts.store_id + ", whose checkpoint is " +
                         text(*row.next_offset) +
                         ": the group worked on another database in between, and what took effect "
                         "there did not here"};
  if (!no_kafka)
    return in_range(facts, *facts.committed, "Kafka's offset (not hapax's)", Jump::foreign_reset);
  const bool same_topic = row.cluster_id == facts.cluster_id && row.topic_id &&
                          *row.topic_id == facts.topic_id && !facts.topic_id.empty();
  if (same_topic) return in_range(facts, *row.next_offset, "the checkpoint");
  return StartHalt{"offset_unproven",
                   "the checkpoint is " + text(*row.next_offset) +
                       ", but the group has no committed offset in Kafka: it has expired, or the "
                       "topic was made again; this librdkafka cannot tell which"};
}

// An operator decided `recreated`, and no start was agreed since.
bool starts_new_log(const StartFacts& facts) {
  return facts.row && facts.row->start_as == "initial";
}

// If a worker was killed between its commit to Kafka and its row, the start takes the committed
// offset. `kafka.initial: latest` would now mean a later offset.
Start first_of_new_log(const StartFacts& facts, bool ours) {
  const bool was_committed = ours && facts.committed && *facts.committed <= facts.high &&
                             facts.provenance->first == facts.row->generation;
  return was_committed ? in_range(facts, *facts.committed, "Kafka's offset", Jump::first_start)
                       : Start(initial(facts));
}

// Decides the offset. number_log() decides the log's number.
Start decide_offset(const StartFacts& facts) {
  const bool here = facts.provenance && facts.provenance->cluster_id == facts.cluster_id;
  const bool ours = here && facts.provenance->store_id == facts.store_id;
  if (!facts.row) {
    if (here) return checkpoint_missing(facts);
    return facts.committed ? in_range(facts, *facts.committed, "Kafka's offset", Jump::first_start)
                           : Start(initial(facts));
  }
  const std::string decided = facts.row->start_as.value_or("");
  if (starts_new_log(facts)) return first_of_new_log(facts, ours);
  // An operator decided only on the offset. Whether offsets and keys still mean the same is checked
  // all the same.
  if (auto halt = recreated(facts)) return *halt;
  if (auto halt = key_spec_changed(facts)) return *halt;
  if (decided == "earliest") {
    const std::int64_t meant = facts.row->next_offset.value_or(facts.committed.value_or(facts.low));
    return StartAt{facts.low, false, std::max<std::int64_t>(0, facts.low - meant), Jump::decision};
  }
  if (decided == "kafka")
    return facts.committed
               ? in_range(facts, *facts.committed, "Kafka's offset", Jump::decision)
               : Start(StartHalt{"offset_unproven",
                                 "an operator decided that the group's offset in Kafka counts, and "
                                 "the group has none any more. It has expired, or the topic was "
                                 "made again"});
  if (decided == "checkpoint" && facts.row->next_offset)
    return in_range(facts, *facts.row->next_offset, "the checkpoint");
  if (facts.read_below > facts.high)
    return in_range(facts, facts.read_below, "what was read of it");
  return with_row(facts, here, ours);
}

// Adds the log's number, which is part of keys that are made of coordinates.
Start number_log(const StartFacts& facts, StartAt start) {
  if (!facts.key_may_be_coordinates) return start;
  const auto number = number_of_log({facts.scope, facts.cluster_id, facts.topic_id, facts.row,
                                     facts.known_logs, facts.high, facts.low, facts.look});
  if (const auto* unproven = std::get_if<LogUnproven>(&number)) return StartLook{unproven->last};
  if (const auto* disputed = std::get_if<LogDisputed>(&number))
    return StartHalt{"topic_recreated", disputed->why, disputed->generation,
                     disputed->is_of_short_log};
  const LogNumber& log = std::get<LogNumber>(number);
  start.generation = log.generation;
  start.learns_log = log.learns;
  // Messages settled beyond the checkpoint have keys with the old number. So they are unknown now,
  // and the guard halts at them.
  if (log.renamed) start.guard_below = facts.high;
  return start;
}

bool is_ours(const StartFacts& facts) {
  const auto& provenance = facts.provenance;
  return provenance && provenance->cluster_id == facts.cluster_id &&
         provenance->store_id == facts.store_id;
}

// Whether Kafka's offset shows that another store is ahead.
bool is_anothers(const StartFacts& facts) {
  const auto& provenance = facts.provenance;
  return provenance && provenance->cluster_id == facts.cluster_id &&
         provenance->store_id != facts.store_id;
}

// Which position of PostgreSQL must not be behind one that was seen. If that was in an earlier run
// of the server, others may have written since this run began.
const store::WalPosition& has_to_hold(const StartFacts& facts, bool was_seen_before) {
  return was_seen_before && facts.began_wal ? *facts.began_wal : *facts.wal;
}

// Whether no run of the partition has begun since that one, and PostgreSQL's own run began since.
// Of what that run saw, PostgreSQL then has to hold what it had when its own run began.
bool is_last_run(const StartFacts& facts, std::int64_t epoch) {
  return facts.row && facts.row->is_of_earlier_run && facts.row->epoch == epoch;
}

// A sentence that tells how one sees that PostgreSQL lost commits. Nothing if it has not.
std::optional<std::string> loss(const StartFacts& facts) {
  if (!facts.wal) return std::nullopt;
  const auto in_kafka =
      is_ours(facts) ? store::WalPosition::parse(facts.provenance->wal) : std::nullopt;
  const store::WalPosition& for_kafka =
      has_to_hold(facts, in_kafka && is_last_run(facts, facts.provenance->epoch));
  const store::WalPosition* here = &has_to_hold(facts, facts.was_seen_before);
  auto seen = facts.seen_wal;
  if (facts.left && !is_last_run(facts, *facts.left)) seen.reset();
  if (in_kafka && (!seen || seen->is_older_than(*in_kafka) || for_kafka.may_lack(*in_kafka))) {
    here = &for_kafka;
    seen = in_kafka;
  }
  if (seen && here->may_lack(*seen))
    return (here == &*facts.wal ? "PostgreSQL is at " : "PostgreSQL began to run at ") +
           here->text() + " (database/timeline/position), and was seen at " + seen->text() +
           " before";
  // Kafka gets an offset only after its checkpoint, which is written synchronously. But for a start
  // that an operator decided, Kafka gets the offset first. If the worker died before it told
  // PostgreSQL, that looks like a loss, so the operator is asked once more.
  const auto& row = facts.row;
  if (is_anothers(facts))
    return "Kafka's offset is of store " + facts.provenance->store_id +
           ", and this database is store " + facts.store_id +
           ", which does not know what was called there";
  if (!is_ours(facts) || !row || !row->next_offset || !facts.committed) return std::nullopt;
  const std::int64_t epoch = facts.provenance->epoch;
  if (epoch < row->epoch || (epoch == row->epoch && *facts.committed <= *row->next_offset))
    return std::nullopt;
  return "Kafka's offset is " + text(*facts.committed) + ", of run " + text(epoch) +
         ", and the checkpoint behind it is gone: it is " + text(*row->next_offset) + ", of run " +
         text(row->epoch);
}

// The question that an operator is asked, or has answered. If a later run has committed Kafka's
// offset since, the question does not count. PostgreSQL has then returned to an older state, whose
// question was about another loss.
store::Doubt question(const StartFacts& facts, std::int64_t run) {
  const store::Doubt& doubt = facts.doubt;
  return doubt.asked > 0 && run > doubt.asked_run ? store::Doubt() : doubt;
}

// The offset below which calls are in doubt since an earlier start. 0 if the checkpoints have
// passed it.
std::int64_t still_in_doubt(const StartFacts& facts) {
  // In a log that was made again, no call was ever in doubt.
  if (starts_new_log(facts)) return 0;
  const std::int64_t below = facts.doubt.below;
  return facts.row && facts.row->highest.value_or(0) >= below ? 0 : below;
}

// If PostgreSQL lost commits, it may have forgotten calls for messages from the start to the log's
// end. If an operator was asked since, no message was called beyond the log's end at that time.
Start doubt_calls(const StartFacts& facts, StartAt at) {
  if (!facts.repeat) return at;
  const auto lost = loss(facts);
  const std::int64_t run = is_ours(facts) ? facts.provenance->epoch : 0;
  const store::Doubt asked = question(facts, run);
  std::int64_t below = asked.asked;
  if (below == 0 && lost) below = facts.high;
  if (*facts.repeat == config::Repeat::never) {
    if (asked.decided == "call") return at;
    if (asked.decided.empty() && below > at.offset)
      return StartHalt{
          "tail_in_doubt",
          lost.value_or("PostgreSQL was behind a position that was seen before") +
              (is_anothers(facts) ? "" : ": it failed over or was restored, and lost its tail") +
              ". Calls for the messages " + text(at.offset) + " to " + text(below - 1) +
              " may have happened that it does not know, and by its route none may be repeated",
          0,
          false,
          below,
          run};
  }
  below = std::max(below, still_in_doubt(facts));
  at.doubt_below = below > at.offset ? below : 0;
  return at;
}

}  // namespace

std::vector<ReadRecord> read_again(const StartFacts& facts, const StartAt& at,
                                   std::vector<ReadRecord> before) {
  const auto& row = facts.row;
  // Records that any worker read before the decision `same_topic` are not compared again.
  if (row)
    std::erase_if(before, [&](const auto& read) { return read.same_topic < row->same_topic; });
  if (row && row->last_record)
    if (const auto last = ReadRecord::parse(*row->last_record)) before.push_back(*last);
  return comparable(std::move(before), at.generation, facts.low, at.offset);
}

std::optional<std::int64_t> doubt_of(const StartFacts& facts, const StartAt& at) {
  const store::Doubt& doubt = facts.doubt;
  const bool was = doubt.below > 0 || doubt.asked > 0 || !doubt.decided.empty();
  return was || at.doubt_below > 0 ? std::optional(at.doubt_below) : std::nullopt;
}

store::AgreedStart agreed_start(const StartFacts& facts, const StartAt& at, std::int64_t epoch) {
  auto from = facts.row ? facts.row->next_offset : std::nullopt;
  if (at.jump == store::Jump::log_start) from = at.offset - at.gap;
  return {.epoch = epoch,
          .offset = at.offset,
          .cluster_id = facts.cluster_id,
          .topic_id = facts.topic_id,
          .generation = at.generation,
          .from = from,
          .jump = at.jump,
          .highest_at_least = at.guard_below,
          .learns_log = at.learns_log,
          .known_logs = facts.known_logs,
          .doubt_below = doubt_of(facts, at),
          .at_log_end = at.offset >= facts.high};
}

std::int32_t first_generation(const StartFacts& facts) {
  return starts_new_log(facts) ? facts.row->generation : 1;
}

std::int64_t settled_before(const StartFacts& facts, const StartAt& at) {
  if (!facts.row || !facts.row->next_offset) return at.offset;
  return std::max(at.offset, facts.row->highest_settled.value_or(facts.high));
}

KafkaLearns when_kafka_learns(const StartFacts& facts, const StartAt& at) {
  if (at.first) return KafkaLearns::before_postgresql;
  if (is_ours(facts)) return KafkaLearns::with_checkpoints;
  const auto& row = facts.row;
  const std::string decided = row ? row->start_as.value_or("") : "";
  const bool overruled = decided == "earliest" || (decided == "checkpoint" && row->next_offset);
  // PostgreSQL's write uses the decision up. After it, Kafka's old offset would lead to another
  // start, or to a halt.
  if (overruled || is_anothers(facts)) return KafkaLearns::before_postgresql;
  return facts.committed ? KafkaLearns::after_postgresql : KafkaLearns::with_checkpoints;
}

bool is_outdated(const StartFacts& facts, const store::Taken& taken) {
  return taken.next_offset != (facts.row ? facts.row->next_offset : std::nullopt);
}

Start decide_start(const StartFacts& facts) {
  Start start = decide_offset(facts);
  if (auto* const at = std::get_if<StartAt>(&start)) {
    at->generation = facts.row ? facts.row->generation : 1;
    start = number_log(facts, *at);
  }
  if (const auto* const at = std::get_if<StartAt>(&start)) start = doubt_calls(facts, *at);
  return start;
}

}  // namespace hapax::worker
