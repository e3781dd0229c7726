#include "store/operator/decisions.hpp"

#include <algorithm>

namespace hapax::store {
namespace {

constexpr std::string_view kCheckpointMissing[] = {"checkpoint_missing"};
constexpr std::string_view kSameTopic[] = {"offset_unproven", "topic_recreated", "other_cluster",
                                           "other_store", "offset_above_end"};
constexpr std::string_view kRecreated[] = {"offset_unproven", "topic_recreated", "other_cluster",
                                           "offset_above_end", "offset_out_of_range"};
constexpr std::string_view kEarliest[] = {"offset_out_of_range", "checkpoint_missing"};
constexpr std::string_view kKeySpec[] = {"key_spec_changed"};
constexpr std::string_view kUnknown[] = {"unknown_below_highest"};
constexpr std::string_view kDoubt[] = {"tail_in_doubt"};
constexpr std::string_view kOneMessage[] = {"unknown_below_highest", "handler_ended_transaction",
                                            "statement_refused",     "unexpected_error",
                                            "cannot_account",        "unreadable"};
constexpr std::string_view kCopied[] = {"store_copied"};
// What a person fixes outside of the facts that hapax compares, and then it goes on.
constexpr std::string_view kFixable[] = {"key_spec_changed",  "handler_ended_transaction",
                                         "statement_refused", "unexpected_error",
                                         "cannot_account",    "unreadable",
                                         "breaker",           "open_call"};

constexpr Decision kAll[] = {
    {"retry", {}, false, "the cause is fixed: go on at the same message"},
    {"earliest", kEarliest, true,
     "go on at the oldest message there is: what this database does not know runs (again), what "
     "Kafka deleted is lost. For checkpoint_missing only if hapax was to process all that Kafka "
     "still has, and no key has expired. If the route's key, tenant or scope was changed, all "
     "messages run"},
    {"accept_kafka", kCheckpointMissing, true,
     "start at the group's offset in Kafka; what was settled beyond that runs again, unless its "
     "key is known. It is not if the route's key, tenant or scope was changed. Not after a restore "
     "of PostgreSQL: it took back effects before that, too"},
    {"same_topic", kSameTopic, true,
     "it is the same topic with the same offsets, and this database is the one that counts: go on "
     "at the checkpoint. Not in a mirror: its offsets differ, so messages would be left out. If "
     "Kafka has written other records below the checkpoint, these are left out"},
    {"recreated", kRecreated, true,
     "the topic was made again: a new generation starts at kafka.initial, and the old checkpoint "
     "no longer counts. A message whose key has expired or failed runs. If the route's key, tenant "
     "or scope was changed, all messages run, also those that took effect under the old one"},
    {"accept", kKeySpec, true,
     "go on under the new keys; what the old worker settled beyond the checkpoint may run again "
     "under another key. Unfinished calls to the outside are made again, also under `never`"},
    {"run", kUnknown, true,
     "run this message and all above it that hapax knows neither by key nor as a dead letter. If "
     "one took effect before retention forgot its key, it takes effect twice. By position, all "
     "above it run, dead letters, too"},
    {"skip", kOneMessage, true,
     "this one message does not run. If it can be read, it becomes a dead letter, which runs only "
     "if "
     "an order names its id or its reason, skipped_by_operator"},
    {"call", kDoubt, true,
     "call for all messages that this database does not know: none of these calls happened, as the "
     "other side shows. One that happened after all happens twice"},
    {"as_unknown", kDoubt, true,
     "call for none of the messages in doubt: each that this database does not know becomes a dead "
     "letter, outcome_unknown. `hapax outside decide` decides about it"},
    {"moved", kCopied, true,
     "this database is the original, moved: it keeps its id and checkpoints"},
    {"copy", kCopied, true,
     "this database is a copy: it gets an id of its own, and ALL checkpoints of ALL groups in it "
     "are deleted"},
};

}  // namespace

bool Decision::fits(std::string_view reason) const {
  return reasons.empty() || std::ranges::find(reasons, reason) != reasons.end();
}

Decision Decision::about(std::string_view reason) const {
  if (name != "retry" || reason != "handler_ended_transaction") return *this;
  return {name, reasons, true,
          "the handler is fixed: its message runs again, though a part of its effect may stand. "
          "Look in the database, and undo that part, or it takes effect twice"};
}

std::span<const Decision> all_decisions() { return kAll; }

const Decision* decision_named(std::string_view name) {
  const auto* const found = std::ranges::find(kAll, name, &Decision::name);
  return found == std::end(kAll) ? nullptr : found;
}

bool is_about_database(const Decision& decision) {
  return decision.fits("store_copied") && !decision.reasons.empty();
}

bool needs_message(const Decision& decision) {
  return decision.name == "skip" || decision.name == "run";
}

std::vector<Decision> decisions_about(std::string_view reason, bool names_message) {
  std::vector<Decision> fitting;
  for (const Decision& decision : kAll)
    if (decision.fits(reason) && (names_message || !needs_message(decision)))
      fitting.push_back(decision.about(reason));
  // The first is `retry`.
  if (std::ranges::find(kFixable, reason) == std::end(kFixable))
    std::rotate(fitting.begin(), fitting.begin() + 1, fitting.end());
  return fitting;
}

std::string decisions_for(std::string_view reason, bool names_message) {
  std::string names;
  for (const Decision& decision : decisions_about(reason, names_message))
    names += (names.empty() ? "" : ", ") + std::string(decision.name);
  return names;
}

}  // namespace hapax::store
