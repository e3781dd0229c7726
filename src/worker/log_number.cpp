#include "worker/log_number.hpp"

#include <algorithm>

namespace hapax::worker {
namespace {

using store::KnownLog;
using Generation = std::optional<std::int32_t>;

struct Found {
  Generation generation;
  bool by_id = false;        // known by the cluster and the topic's id
  bool agreed = false;       // and hapax.logs has it under this very name
  std::int64_t reached = 0;  // the highest checkpoint of another group in it
  // The highest that another group read last and that this log can hold.
  std::optional<ReadRecord> last;
};

// Whether another id has this number in the same cluster. Then a client that could not tell ids
// meant that log.
bool is_anothers(const std::vector<KnownLog>& known, const KnownLog& unnamed,
                 const std::string& topic_id) {
  return std::ranges::any_of(known, [&](const KnownLog& other) {
    return other.cluster_id == unnamed.cluster_id && other.generation == unnamed.generation &&
           !other.topic_id.empty() && other.topic_id != topic_id;
  });
}

// Adds what other groups have read of the log with this number.
void add_readings(Found& found, const std::vector<KnownLog>& known, const LogFacts& facts) {
  for (const KnownLog& log : known) {
    if (log.cluster_id != facts.cluster_id || log.generation != found.generation) continue;
    found.reached = std::max(found.reached, log.reached);
    const auto last = ReadRecord::parse(log.last_record);
    if (last && last->generation == log.generation && last->offset >= facts.log_begin &&
        last->offset < facts.log_end && (!found.last || found.last->offset < last->offset))
      found.last = last;
  }
}

// What is known of the log with this name. Without an id, that is the cluster's newest log.
Found find(const std::vector<KnownLog>& known, const LogFacts& facts) {
  Found found;
  const auto newer = [&](const KnownLog& log) {
    return !found.generation || log.generation > *found.generation;
  };
  for (const KnownLog& log : known) {
    if (log.cluster_id != facts.cluster_id) continue;
    if (!facts.topic_id.empty() && log.topic_id != facts.topic_id) continue;
    if (newer(log)) found.generation = log.generation;
  }
  found.by_id = found.generation && !facts.topic_id.empty();
  if (!found.generation && !facts.topic_id.empty())
    for (const KnownLog& log : known)
      if (log.cluster_id == facts.cluster_id && log.topic_id.empty() &&
          !is_anothers(known, log, facts.topic_id) && newer(log))
        found.generation = log.generation;
  found.agreed = std::ranges::any_of(known, [&](const KnownLog& log) {
    return log.agreed && log.cluster_id == facts.cluster_id && log.topic_id == facts.topic_id &&
           log.generation == found.generation;
  });
  add_readings(found, known, facts);
  return found;
}

std::vector<KnownLog> of_scope(const LogFacts& facts) {
  std::vector<KnownLog> known;
  std::ranges::copy_if(facts.known, std::back_inserter(known),
                       [&](const KnownLog& log) { return log.scope == facts.scope; });
  return known;
}

// A number that no log of this partition has ever had, in any scope. A group may change its scope,
// and its dead letters keep their numbers.
LogNumber unused(const LogFacts& facts) {
  std::int32_t generation = facts.row ? facts.row->generation : 1;
  for (const KnownLog& log : facts.known) generation = std::max(generation, log.generation + 1);
  return {generation, true};
}

// Whether other groups have read further than this log goes. Then theirs was another log.
bool is_shorter(const LogFacts& facts, const Found& found) { return found.reached > facts.log_end; }

// A topic that was made again may have grown past all that was read of the old one. Then no offset
// shows that, but the record does that another group read last.
enum class Proof { none_needed, wanted, refuted };

Proof proof(const LogFacts& facts, const Found& found) {
  if (found.by_id || !found.last) return Proof::none_needed;
  if (!facts.look || facts.look->wanted.generation != *found.generation) return Proof::wanted;
  return facts.look->is_another() ? Proof::refuted : Proof::none_needed;
}

LogDisputed another_stands(const LogFacts& facts, const Found& found) {
  return {"another group of scope \"" + facts.scope + "\" has read the record at offset " +
              std::to_string(facts.look->wanted.offset) +
              ", and another record stands there now: the topic was made again, or its log lost "
              "its end. Keys are made of coordinates, which would mean the old messages. Decide "
              "`recreated` for both groups",
          *found.generation};
}

// The group begins this log, and has nothing of it yet.
NumberedLog first_number(const LogFacts& facts, const std::vector<KnownLog>& known) {
  if (const Found found = find(known, facts); found.generation) {
    if (is_shorter(facts, found))
      return LogDisputed{
          "another group of scope \"" + facts.scope + "\" has read this topic up to " +
              std::to_string(found.reached) + ", but the log ends at " +
              std::to_string(facts.log_end) +
              ": the topic was made again, or its log lost its end. Keys are made of coordinates, "
              "which would mean the old messages. Decide `recreated` for both groups",
          *found.generation, true};
    const Proof proven = proof(facts, found);
    if (proven == Proof::wanted) return LogUnproven{*found.last};
    if (proven == Proof::refuted) return another_stands(facts, found);
    return LogNumber{*found.generation, !found.agreed};
  }
  if (known.empty())
    if (const Found elsewhere = find(facts.known, facts);
        elsewhere.generation && !is_shorter(facts, elsewhere))
      return LogNumber{*elsewhere.generation, true};
  return unused(facts);
}

// An operator decided that the topic was made again, perhaps for another group before this one.
NumberedLog next_number(const LogFacts& facts, const std::vector<KnownLog>& known) {
  const std::int32_t before = facts.row->generation - 1;  // the decision raised it
  const Found found = find(known, facts);
  if (!found.generation || is_shorter(facts, found) ||
      (found.by_id ? *found.generation == before : *found.generation <= before))
    return unused(facts);
  const Proof proven = proof(facts, found);
  if (proven == Proof::wanted) return LogUnproven{*found.last};
  if (proven == Proof::refuted) return unused(facts);
  return LogNumber{*found.generation, !found.agreed};
}

// `recreated` was decided, and since then perhaps also an offset.
bool begins_anew(const LogFacts& facts) {
  if (!facts.row) return false;
  const store::CheckpointRow& row = *facts.row;
  if (!row.next_offset) return row.start_as == "initial";
  return row.start_as == "checkpoint" && row.key_spec.empty() && !row.cluster_id;
}

}  // namespace

NumberedLog number_of_log(const LogFacts& facts) {
  const std::vector<KnownLog> known = of_scope(facts);
  if (begins_anew(facts)) return next_number(facts, known);
  if (!facts.row || !facts.row->next_offset) return first_number(facts, known);
  const std::int32_t own = facts.row->generation;
  const Found found = find(known, facts);
  if (!found.generation) return LogNumber{own, true};
  // Under another scope all keys are new, so what only this group knows of the log does not count.
  if (facts.row->scope != facts.scope) {
    NumberedLog number = first_number(facts, known);
    const auto* const disputed = std::get_if<LogDisputed>(&number);
    // The checkpoint is of this log, so the other groups read another one.
    if (disputed != nullptr && !disputed->is_of_short_log) return unused(facts);
    return number;
  }
  if (*found.generation == own) return LogNumber{own, !found.agreed};
  // After `same_topic` the checkpoint does not name its cluster and topic.
  if (facts.row->start_as == "checkpoint" && !facts.row->cluster_id)
    return LogNumber{*found.generation, !found.agreed, true};
  // Written by a worker of an older schema.
  if (*found.generation < own) return LogNumber{own, true};
  return LogDisputed{
      "another group of scope \"" + facts.scope + "\" has this topic as generation " +
          std::to_string(*found.generation) +
          ", because an operator decided that it was made again. This group has it as generation " +
          std::to_string(own) +
          ", and keys are made of coordinates, which must mean the same to both. `recreated` if "
          "the checkpoint is of the old topic, `same_topic` if it is of this one",
      own};
}

}  // namespace hapax::worker
