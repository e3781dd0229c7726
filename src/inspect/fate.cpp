#include "inspect/fate.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "cli/output.hpp"
#include "observe/escape.hpp"

namespace hapax::app {
namespace {

// Producers' clocks may be ahead of PostgreSQL's, whose clock decides when a key expires.
constexpr std::chrono::minutes kClockSkew{5};

bool is_this(const Standing& standing, const Facts& facts) {
  return facts.key &&
         facts.key->holder.is({standing.group, standing.partition.first, standing.generation,
                               standing.partition.second, facts.offset});
}

// A key that is forgotten keeps the error of what ended it before.
bool took_effect(const store::KeyRow& key) {
  return !key.refused && (key.holder.status == "completed" || key.holder.status == "forgotten");
}

bool below_checkpoint(const Standing& standing, const Facts& facts) {
  return standing.checkpoint && facts.offset < *standing.checkpoint;
}

bool may_be_expired(const Standing& standing, const Facts& facts) {
  return facts.timestamp_ms &&
         *facts.timestamp_ms <= standing.now_ms - standing.retention.count() +
                                    std::chrono::milliseconds(kClockSkew).count();
}

template <class Kind>
const Kind* derived_as(const Facts& facts) {
  return facts.derived ? std::get_if<Kind>(&*facts.derived) : nullptr;
}

Verdict without_record(const Standing& standing, const Facts& facts) {
  if (facts.in_kafka == InKafka::no_record) return Verdict::not_a_message;
  if (facts.in_kafka == InKafka::not_written) return Verdict::not_written;
  const bool left_out = below_checkpoint(standing, facts) && standing.left_out.at(facts.offset);
  return left_out ? Verdict::skipped : Verdict::deleted;
}

// Its key shows that it was given up on, and no dead letter keeps it.
bool lost_its_letter(const Standing& standing, const Facts& facts) {
  return is_this(standing, facts) && !facts.dead &&
         (facts.key->holder.status == "failed" || facts.key->holder.status == "unknown");
}

// A record that the checkpoint has passed and that left neither an effect nor a dead letter.
Verdict passed(const Standing& standing, const Facts& facts) {
  if (standing.left_out.at(facts.offset) != nullptr) return Verdict::skipped;
  if (derived_as<key::SkippedTombstone>(facts) != nullptr) return Verdict::skipped;
  if (derived_as<key::Refusal>(facts) != nullptr) return Verdict::unaccounted;
  if (standing.by_position) return Verdict::completed;
  if (may_be_expired(standing, facts)) return Verdict::expired;
  const bool was_ended = facts.key && (facts.key->retaken || facts.key->refused);
  return was_ended ? Verdict::forgotten : Verdict::unaccounted;
}

std::string quoted(const std::string& text) { return '"' + text + '"'; }

std::string by_jump(const store::JumpRow& jump) {
  return "left out by " + jump.who + " at " + time_cell(jump.at) + " (" + jump.cause + " from " +
         (jump.from ? std::to_string(*jump.from) : "nowhere") + " to " + std::to_string(jump.to) +
         "): " + jump.why;
}

std::string end_of(const store::DeadRow& dead) {
  if (!dead.ended_as) return {};
  return "; " + *dead.ended_as + " by " + dead.ended_by.value_or("?") + " at " +
         time_cell(dead.ended_at.value_or("")) + ": " + dead.ended_why.value_or("");
}

std::string tell_dead(const Standing& standing, const Facts& facts) {
  if (!facts.dead)
    return "its call was ended at " + time_cell(facts.key->updated_at) +
           " and nothing was booked: an operator gave it up, or the other side refused "
           "(hapax keys show has the reason)";
  const store::DeadRow& dead = *facts.dead;
  std::string text = "given up on at " + time_cell(dead.created_at) + ": dead letter " +
                     std::to_string(dead.id) + ", " + dead.reason + " (" + dead.error + ")" +
                     end_of(dead);
  const bool by_another = facts.key && facts.key->holder.status == "completed";
  if (!by_another || dead.reason == "payload_drift") return text;  // whose error names it
  const std::string name = name_of(standing, facts.key->holder);
  const std::string at = time_cell(facts.key->updated_at);
  if (facts.key->refused)
    return text + "; the call for " + name + " was refused or given up at " + at +
           ", and nothing was booked";
  return text + "; its operation was completed by " + name + " at " + at;
}

std::string tell_completed(const Standing& standing, const Facts& facts) {
  if (!facts.key)
    return (facts.settled ? "settled, ahead of the checkpoint"
                          : "settled: the checkpoint " + std::to_string(*standing.checkpoint) +
                                " has passed it, and it is no dead letter. The route's key is the "
                                "position, so nothing else is kept of it") +
           (standing.same_topic ? "; " + tell_same_topic(standing) : std::string());
  std::string text = "took effect at " + time_cell(facts.key->updated_at);
  if (facts.key->holder.status == "forgotten")
    text = "took effect; an operator had its key forgotten at " + time_cell(facts.key->updated_at) +
           ", so that it runs again when it comes again";
  if (facts.dead)
    text += "; before, it was given up on: dead letter " + std::to_string(facts.dead->id) + ", " +
            facts.dead->reason + end_of(*facts.dead);
  return text;
}

// What its key tells, if that does not decide.
std::string tell_key(const Standing& standing, const Facts& facts) {
  if (const auto* refusal = derived_as<key::Refusal>(facts))
    return "it has no key: " + refusal->reason + " (" + observe::to_valid_utf8(refusal->detail) +
           ")";
  const auto* identity = derived_as<key::Identity>(facts);
  if (identity == nullptr) return "it is a tombstone that the route skips";
  if (!facts.key) return "PostgreSQL does not know its key " + quoted(identity->key);
  return "its key " + quoted(identity->key) + " is " + facts.key->holder.status + " by " +
         name_of(standing, facts.key->holder) +
         (facts.same_payload ? "" : ", with another payload");
}

std::string tell_ahead(const Standing& standing, const Facts& facts, Verdict verdict) {
  std::string text;
  if (verdict == Verdict::waiting) {
    const store::AttemptRow& attempt = *facts.attempt;
    text = "failed " + std::to_string(attempt.count) + " times, the last at " +
           time_cell(attempt.last_at) + " (" + attempt.last_error + "); next try at " +
           time_cell(attempt.next_try);
    if (attempt.crashes > 0)
      text += "; begun " + std::to_string(attempt.crashes) +
              " times by a process that did not live to end it, or runs now";
  } else {
    text = standing.checkpoint ? "not settled yet: at or above the checkpoint " +
                                     std::to_string(*standing.checkpoint)
                               : "not settled yet: the group has not started here";
    if (facts.key) text += "; " + tell_key(standing, facts);
  }
  if (standing.halt)
    text += "; the partition is halted since " + standing.halt->since + ": " +
            standing.halt->reason + " (hapax status shows how to end it)";
  return text;
}

std::string tell_passed(const Standing& standing, const Facts& facts, Verdict verdict) {
  std::string text = "the checkpoint " + std::to_string(*standing.checkpoint) + " has passed it, ";
  if (lost_its_letter(standing, facts))
    return text + "it was given up on at " + time_cell(facts.key->updated_at) +
           ", and its dead letter has been deleted";
  text += tell_key(standing, facts) + ", and it is no dead letter";
  if (facts.attempt) text += "; it failed " + std::to_string(facts.attempt->count) + " times";
  if (verdict == Verdict::expired)
    text += "; it is older than the route's retention, so hapax cannot tell any more";
  if (verdict == Verdict::forgotten)
    text += "; that key was failed or forgotten before, so hapax cannot tell any more";
  return text;
}

}  // namespace

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::completed: return "completed";
    case Verdict::duplicate: return "duplicate";
    case Verdict::dead_letter: return "dead_letter";
    case Verdict::waiting: return "waiting";
    case Verdict::in_flight: return "in_flight";
    case Verdict::not_a_message: return "not_a_message";
    case Verdict::skipped: return "skipped";
    case Verdict::expired: return "expired";
    case Verdict::forgotten: return "forgotten";
    case Verdict::deleted: return "deleted";
    case Verdict::not_written: return "not_written";
    case Verdict::unaccounted: return "unaccounted";
  }
  return "unknown";
}

std::string tell_same_topic(const Standing& standing) {
  const store::Decided& decided = standing.same_topic.value();
  return "the log had lost its end, or seemed to, and " + decided.who + " decided same_topic at " +
         time_cell(decided.at) + ": " + decided.why +
         ". If Kafka had written other records at offsets that were settled before, they were left "
         "out, and count as completed";
}

std::string name_of(const Standing& standing, const store::KeyHolder& holder) {
  std::string text =
      holder.topic + "/" + std::to_string(holder.partition) + "/" + std::to_string(holder.offset);
  if (holder.group != standing.group) text += " of group " + holder.group;
  const bool here = holder.group == standing.group && holder.topic == standing.partition.first;
  if (here && holder.generation != standing.generation)
    text += " of generation " + std::to_string(holder.generation);
  return text;
}

LeftOut::LeftOut(const std::vector<store::JumpRow>& jumps) {
  std::int64_t at = 0, reached = 0;
  for (const store::JumpRow& jump : jumps) {
    if (!jump.from) {  // it begins again
      gaps_.clear();
      at = reached = 0;
    }
    const std::int64_t from = jump.from.value_or(0);
    read(at, std::max(at, from));
    // What was read before is not left out by a jump over it.
    if (const std::int64_t first = std::max(from, reached); jump.to > first)
      gaps_.push_back({first, jump.to, jump});
    reached = std::max({reached, from, jump.to});
    at = jump.to;
  }
  read(at, std::numeric_limits<std::int64_t>::max());
}

// These offsets came after all.
void LeftOut::read(std::int64_t from, std::int64_t to) {
  std::vector<Gap> left;
  for (const Gap& gap : gaps_) {
    if (gap.from < std::min(gap.to, from))
      left.push_back({gap.from, std::min(gap.to, from), gap.by});
    if (std::max(gap.from, to) < gap.to) left.push_back({std::max(gap.from, to), gap.to, gap.by});
  }
  gaps_ = std::move(left);
}

const store::JumpRow* LeftOut::at(std::int64_t offset) const {
  const auto behind = std::ranges::upper_bound(gaps_, offset, {}, &Gap::from);
  if (behind == gaps_.begin()) return nullptr;
  const Gap& gap = *std::prev(behind);
  return offset < gap.to ? &gap.by : nullptr;
}

// Its call to the outside is not done.
bool is_called(const store::KeyRow& key) {
  return key.holder.status == "started" || key.holder.status == "answered";
}

Verdict classify(const Standing& standing, const Facts& facts) {
  const bool passed_by = below_checkpoint(standing, facts);
  if (lost_its_letter(standing, facts))
    return passed_by ? Verdict::unaccounted : Verdict::in_flight;
  if (is_this(standing, facts) && !is_called(*facts.key)) {
    const std::string& status = facts.key->holder.status;
    if (took_effect(*facts.key) && (status == "completed" || !facts.dead))
      return Verdict::completed;
    if (facts.dead || status != "forgotten") return Verdict::dead_letter;
  }
  if (facts.dead) return Verdict::dead_letter;
  if (facts.in_kafka != InKafka::record) return without_record(standing, facts);
  if (facts.key && facts.same_payload &&
      (facts.key->holder.status == "completed" || (passed_by && took_effect(*facts.key))))
    return Verdict::duplicate;
  if (facts.settled) return Verdict::completed;
  if (passed_by) return passed(standing, facts);
  return facts.attempt ? Verdict::waiting : Verdict::in_flight;
}

std::string tell(const Standing& standing, const Facts& facts, Verdict verdict) {
  switch (verdict) {
    case Verdict::completed: return tell_completed(standing, facts);
    case Verdict::duplicate:
      return "a duplicate of " + name_of(standing, facts.key->holder) +
             (facts.key->refused ? ", whose call was ended without an effect"
              : facts.key->holder.status == "completed"
                  ? ", which took effect at " + time_cell(facts.key->updated_at)
                  : ", which took effect and had its key forgotten since");
    case Verdict::dead_letter: return tell_dead(standing, facts);
    case Verdict::waiting:
    case Verdict::in_flight: return tell_ahead(standing, facts, verdict);
    case Verdict::not_a_message:
      return "Kafka has no record at this offset: a control record, one of an aborted transaction, "
             "or removed by compaction";
    case Verdict::skipped: {
      const store::JumpRow* const jump = standing.left_out.at(facts.offset);
      if (jump == nullptr) return "a tombstone, and the route skips tombstones";
      return by_jump(*jump) +
             (standing.by_position
                  ? "; by position hapax cannot tell whether it took effect before, ahead of that"
                  : "");
    }
    case Verdict::deleted:
      return "Kafka has deleted it, and PostgreSQL knows no dead letter by its coordinates; " +
             std::string(below_checkpoint(standing, facts)
                             ? "the checkpoint has passed it; if you know its key, ask "
                               "with --key"
                             : "the checkpoint has not passed it: it was not settled before");
    case Verdict::not_written: return "the log ends before it";
    case Verdict::expired:
    case Verdict::forgotten:
    case Verdict::unaccounted: return tell_passed(standing, facts, verdict);
  }
  return {};
}

}  // namespace hapax::app
