// A worker may die at each step of a start. Wherever that is, the next start finds the same place.
#include <map>
#include <string>
#include <vector>

#include "start_case.hpp"

namespace hapax::worker {
namespace {

using namespace start_case;

std::vector<StartFacts> kafkas_offsets() {
  std::vector<StartFacts> all = {with(std::nullopt, false, std::nullopt),
                                 with(10, false, std::nullopt),
                                 with(90, false, std::nullopt),
                                 with(60, true, std::nullopt),
                                 with(60, true, std::nullopt),
                                 with(60, true, std::nullopt),
                                 with(90, true, std::nullopt)};
  all[4].provenance->first = true;
  all[5].provenance->store_id = "store-2";
  all[6].provenance->cluster_id = "cluster-2";  // mirrored
  return all;
}

std::vector<std::optional<store::CheckpointRow>> rows() {
  std::vector<std::optional<store::CheckpointRow>> all = {std::nullopt};
  for (const auto next : {std::optional<std::int64_t>(), std::optional<std::int64_t>(50)})
    for (const char* decided : {"", "checkpoint", "earliest", "kafka", "initial"}) {
      all.emplace_back(row(next));
      if (*decided != '\0') all.back()->start_as = decided;
    }
  return all;
}

// Each of the facts from which a partition starts.
std::vector<StartFacts> all_starts() {
  std::vector<StartFacts> all;
  for (const StartFacts& kafka : kafkas_offsets())
    for (const auto& row : rows())
      for (const bool has_ids : {true, false})
        for (const std::int64_t low : {0, 20}) {
          StartFacts facts = kafka;
          facts.row = row;
          facts.low = low;
          facts.earliest_when_out_of_range = true;
          if (!has_ids) facts.topic_id.clear();
          if (!has_ids && row) facts.row->topic_id.reset();
          if (std::holds_alternative<StartAt>(decide_start(facts))) all.push_back(facts);
        }
  return all;
}

std::string told_by(const StartFacts& facts) {
  const auto& row = facts.row;
  return "Kafka: " + (facts.committed ? std::to_string(*facts.committed) : "none") + " " +
         (facts.provenance ? facts.provenance->text() : "foreign") + "; row: " +
         (row ? std::to_string(row->next_offset.value_or(-1)) + " " + row->start_as.value_or("")
              : "none") +
         "; low " + std::to_string(facts.low) + "; topic id '" + facts.topic_id + "'";
}

std::string start_of(const StartFacts& facts) {
  const auto decision = decide_start(facts);
  const auto* halt = std::get_if<StartHalt>(&decision);
  return halt != nullptr ? halt->reason : std::to_string(std::get<StartAt>(decision).offset);
}

void taken(StartFacts& facts) {
  if (!facts.row) facts.row = row(std::nullopt);
  ++facts.row->epoch;
}

void tell_kafka(StartFacts& facts, const StartAt& at) {
  facts.committed = at.offset;
  facts.provenance =
      kafka::Provenance{kStore, kCluster, facts.row->epoch, at.first ? first_generation(facts) : 0};
}

void tell_postgresql(StartFacts& facts, const StartAt& at) {
  facts.row->next_offset = at.offset;
  facts.row->start_as.reset();
}

TEST(StartDeath, LeavesTheNextStartAtTheSameOffsetAtEachStep) {
  std::map<KafkaLearns, int> seen;
  for (const StartFacts& facts : all_starts()) {
    SCOPED_TRACE(told_by(facts));
    const StartAt at = start_case::at(facts);
    const KafkaLearns when = when_kafka_learns(facts, at);
    ++seen[when];
    const std::string same = std::to_string(at.offset);
    StartFacts left = facts;
    taken(left);
    EXPECT_EQ(start_of(left), same) << "taken";
    if (when == KafkaLearns::before_postgresql) {
      tell_kafka(left, at);
      EXPECT_EQ(start_of(left), same) << "told Kafka first";
    }
    tell_postgresql(left, at);
    EXPECT_EQ(start_of(left), same) << "told PostgreSQL";
    if (when == KafkaLearns::after_postgresql) {
      tell_kafka(left, at);
      EXPECT_EQ(start_of(left), same) << "told both";
    }
    left.row->next_offset = at.offset + 5;
    EXPECT_EQ(start_of(left), std::to_string(at.offset + 5)) << "a checkpoint, and no commit yet";
  }
  for (const KafkaLearns when : {KafkaLearns::with_checkpoints, KafkaLearns::before_postgresql,
                                 KafkaLearns::after_postgresql})
    EXPECT_GT(seen[when], 4) << static_cast<int>(when);
}

}  // namespace
}  // namespace hapax::worker
