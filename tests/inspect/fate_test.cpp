// The verdicts of explain and audit, as a table.
#include "inspect/fate.hpp"

#include <gtest/gtest.h>

namespace hapax::app {
namespace {

constexpr std::int64_t kNow = 1'000'000'000'000;
constexpr std::int64_t kHour = 3'600'000;
constexpr std::int64_t kOffset = 50;  // of the message that is asked for

Standing standing(std::optional<std::int64_t> checkpoint = 100) {
  Standing standing;
  standing.group = "g";
  standing.partition = {"t", 3};
  standing.generation = 2;
  standing.checkpoint = checkpoint;
  standing.retention = std::chrono::hours(24);
  standing.now_ms = kNow;
  return standing;
}

Facts record() {
  Facts facts;
  facts.offset = kOffset;
  facts.in_kafka = InKafka::record;
  facts.timestamp_ms = kNow - kHour;
  facts.derived = key::Identity{"k", "", {"digest", "payload"}};
  return facts;
}

enum Payload { same, other };

// The key's row: held by the message at `offset`.
Facts held(const std::string& status, std::int64_t offset, Payload payload = same) {
  Facts facts = record();
  facts.key = store::KeyRow{{status, {}, "g", "t", 2, 3, offset}, false, "then", "later"};
  facts.same_payload = payload == same;
  return facts;
}

Facts retaken(Facts facts) {
  facts.key->retaken = true;
  return facts;
}

Facts dead(Facts facts) {
  facts.dead = store::DeadRow{17, "rejected", "no", "then", {}, {}, {}, {}};
  return facts;
}

Facts refused(Facts facts) {
  facts.key->refused = true;
  return facts;
}

Facts tried(Facts facts) {
  facts.attempt = store::AttemptRow{2, 0, "no", "then", "soon"};
  return facts;
}

Facts old(Facts facts) {
  facts.timestamp_ms = kNow - 25 * kHour;
  return facts;
}

Facts settled(Facts facts) {
  facts.settled = true;
  return facts;
}

Facts derived(key::Derived derived) {
  Facts facts = record();
  facts.derived = std::move(derived);
  return facts;
}

Facts gone(InKafka where) {
  Facts facts;
  facts.offset = kOffset;
  facts.in_kafka = where;
  return facts;
}

Facts of_generation(std::int32_t generation, Facts facts) {
  facts.key->holder.generation = generation;
  return facts;
}

Facts of_group(const std::string& group, Facts facts) {
  facts.key->holder.group = group;
  return facts;
}

struct Case {
  const char* what;
  Facts facts;
  Verdict below;  // with the checkpoint above it
  Verdict above;  // with the checkpoint at it
};

using enum Verdict;

const Case kTable[] = {
    {"its key was completed by itself", held("completed", 50), completed, completed},
    {"completed by itself, a dead letter before: replayed", dead(held("completed", 50)), completed,
     completed},
    {"the other side of its call refused", dead(refused(held("completed", 50))), dead_letter,
     dead_letter},
    {"an operator gave its call up, and it has no letter", refused(held("completed", 50)),
     dead_letter, dead_letter},
    {"its call did not happen, an operator decided", refused(held("forgotten", 50)), forgotten,
     in_flight},
    {"its key failed by another and was forgotten", refused(held("forgotten", 40)), forgotten,
     in_flight},
    {"its call is not done", held("started", 50), unaccounted, in_flight},
    {"its call is answered", held("answered", 50), unaccounted, in_flight},
    {"what became of its call is unknown", dead(held("unknown", 50)), dead_letter, dead_letter},
    {"completed by itself, then forgotten", retaken(held("forgotten", 50)), completed, completed},
    {"failed by itself, then forgotten", dead(retaken(held("forgotten", 50))), dead_letter,
     dead_letter},
    {"failed by itself", dead(held("failed", 50)), dead_letter, dead_letter},
    {"failed by itself, and somebody deleted the dead letter", held("failed", 50), unaccounted,
     in_flight},
    {"the same of a call whose outcome is unknown", held("unknown", 50), unaccounted, in_flight},
    {"a dead letter without a key row", dead(record()), dead_letter, dead_letter},
    {"a drifted one", dead(held("completed", 40, other)), dead_letter, dead_letter},
    {"a dead letter whose operation another message completed", dead(held("completed", 60)),
     dead_letter, dead_letter},
    {"completed by another, with this payload", held("completed", 40), duplicate, duplicate},
    {"completed by the same coordinates of another generation",
     of_generation(1, held("completed", 50)), duplicate, duplicate},
    {"completed by the same coordinates for another group", of_group("h", held("completed", 50)),
     duplicate, duplicate},
    {"drifted, and no dead letter", held("completed", 40, other), unaccounted, in_flight},
    {"drifted, no dead letter, the key changed hands", retaken(held("completed", 60, other)),
     forgotten, in_flight},
    {"drifted, no dead letter, older than retention", old(held("completed", 60, other)), expired,
     in_flight},
    {"completed by another and forgotten: runs where it comes again",
     retaken(held("forgotten", 40)), duplicate, in_flight},
    {"failed by another: runs", held("failed", 40), unaccounted, in_flight},
    {"started by itself: halts", held("started", 50), unaccounted, in_flight},
    {"started by another: halts", held("started", 40), unaccounted, in_flight},
    {"nobody knows its key", record(), unaccounted, in_flight},
    {"failed runs", tried(record()), unaccounted, waiting},
    {"failed runs of a key that another message failed", tried(held("failed", 40)), unaccounted,
     waiting},
    {"failed runs, then completed", tried(held("completed", 50)), completed, completed},
    {"older than retention", old(record()), expired, in_flight},
    {"no key, and no dead letter", derived(key::Refusal{"missing_key", "none"}), unaccounted,
     in_flight},
    {"no key and old: dead letters do not expire",
     old(derived(key::Refusal{"missing_key", "none"})), unaccounted, in_flight},
    {"a tombstone that the route skips", derived(key::SkippedTombstone{}), skipped, in_flight},
    {"no record there", gone(InKafka::no_record), not_a_message, not_a_message},
    {"removed by compaction, and a dead letter", dead(gone(InKafka::no_record)), dead_letter,
     dead_letter},
    {"deleted by Kafka", gone(InKafka::deleted), deleted, deleted},
    {"deleted by Kafka, and a dead letter", dead(gone(InKafka::deleted)), dead_letter, dead_letter},
    {"not written yet", gone(InKafka::not_written), not_written, not_written},
};

TEST(Fate, IsAsInTheTable) {
  for (const Case& one : kTable) {
    SCOPED_TRACE(one.what);
    EXPECT_STREQ(name_of(classify(standing(100), one.facts)), name_of(one.below));
    EXPECT_STREQ(name_of(classify(standing(51), one.facts)), name_of(one.below));
    EXPECT_STREQ(name_of(classify(standing(50), one.facts)), name_of(one.above));
    EXPECT_STREQ(name_of(classify(standing({}), one.facts)), name_of(one.above))
        << "where no start was agreed";
  }
}

// The checkpoint passes only what is settled, and there are no keys that could tell more.
TEST(Fate, ByPositionTheCheckpointTells) {
  const auto verdict = [](std::int64_t checkpoint, const Facts& facts) {
    Standing here = standing(checkpoint);
    here.by_position = true;
    EXPECT_NE(tell(here, facts, classify(here, facts)), "");
    return classify(here, facts);
  };
  EXPECT_EQ(verdict(kOffset + 1, record()), completed);
  EXPECT_EQ(verdict(kOffset + 1, old(record())), completed);
  EXPECT_EQ(verdict(kOffset, record()), in_flight);
  EXPECT_EQ(verdict(kOffset, settled(record())), completed);
  EXPECT_EQ(verdict(kOffset, tried(record())), waiting);
  EXPECT_EQ(verdict(kOffset + 1, dead(held("failed", kOffset))), dead_letter);
  EXPECT_EQ(verdict(kOffset + 1, held("failed", kOffset)), unaccounted);  // the letter was deleted
  EXPECT_EQ(verdict(kOffset + 1, derived(key::SkippedTombstone{})), skipped);
}

// No key tells whether it is the record that was settled there.
TEST(Fate, ByPositionNamesTheDecisionThatLeftOutWhatWasWrittenAgain) {
  Standing here = standing(kOffset + 1);
  here.by_position = true;
  here.same_topic = {"anna", "it is the same", "then"};
  for (const Facts& facts : {record(), settled(record())})
    EXPECT_NE(tell(here, facts, completed)
                  .find("anna decided same_topic at then: it is the same. If "
                        "Kafka had written other records"),
              std::string::npos)
        << tell(here, facts, completed);
}

TEST(Fate, HasASentenceForEveryVerdict) {
  for (const Case& one : kTable) {
    for (const auto checkpoint : {100, 50}) {
      const Standing here = standing(checkpoint);
      EXPECT_NE(tell(here, one.facts, classify(here, one.facts)), "") << one.what;
    }
  }
}

TEST(Fate, TellsWhatIsKnown) {
  const auto told = [](const Standing& here, const Facts& facts) {
    return tell(here, facts, classify(here, facts));
  };
  EXPECT_EQ(told(standing(), held("completed", 40)),
            "a duplicate of t/3/40, which took effect at then");
  EXPECT_EQ(told(standing(), of_group("h", held("completed", 40))),
            "a duplicate of t/3/40 of group h, which took effect at then");
  EXPECT_EQ(told(standing(), of_generation(1, held("completed", 40))),
            "a duplicate of t/3/40 of generation 1, which took effect at then");
  EXPECT_EQ(told(standing(), dead(held("completed", 60))),
            "given up on at then: dead letter 17, rejected (no); its operation was completed by "
            "t/3/60 at then");
  EXPECT_EQ(told(standing(), dead(refused(held("completed", 60)))),
            "given up on at then: dead letter 17, rejected (no); the call for t/3/60 was refused "
            "or given up at then, and nothing was booked");
  EXPECT_EQ(told(standing(), record()),
            "the checkpoint 100 has passed it, PostgreSQL does not know its key \"k\", and it is "
            "no dead letter");
  EXPECT_EQ(told(standing(), held("failed", 50)),
            "the checkpoint 100 has passed it, it was given up on at then, and its dead letter has "
            "been deleted");
  Facts ended = dead(record());
  ended.dead->ended_as = "discarded";
  ended.dead->ended_by = "anna";
  ended.dead->ended_at = "now";
  ended.dead->ended_why = "a test";
  EXPECT_EQ(told(standing(), ended),
            "given up on at then: dead letter 17, rejected (no); discarded by anna at now: a test");
  Standing halted = standing(50);
  halted.halt = store::Halt{1, "t", 3, false, 2, 50, "breaker", "", "noon", "w"};
  EXPECT_EQ(told(halted, record()),
            "not settled yet: at or above the checkpoint 50; the partition is halted since noon: "
            "breaker (hapax status shows how to end it)");
}

store::JumpRow jump(std::optional<std::int64_t> from, std::int64_t to, const std::string& cause) {
  return {from, to, cause, "anna", "why", "then"};
}

std::string gaps(const std::vector<store::JumpRow>& jumps) {
  const LeftOut left_out(jumps);
  std::string text;
  for (const LeftOut::Gap& gap : left_out.gaps())
    text += std::to_string(gap.from) + "-" + std::to_string(gap.to) + " " + gap.by.cause + " ";
  return text;
}

TEST(LeftOut, IsWhatWasJumpedOverAndNotRewoundTo) {
  EXPECT_EQ(gaps({}), "");
  EXPECT_EQ(gaps({jump({}, 30, "first_start")}), "0-30 first_start ");
  EXPECT_EQ(gaps({jump({}, 0, "first_start")}), "");
  EXPECT_EQ(gaps({jump({}, 30, "first_start"), jump(40, 60, "skip")}),
            "0-30 first_start 40-60 skip ");
  EXPECT_EQ(gaps({jump(40, 60, "skip"), jump(70, 50, "rewind")}), "40-50 skip ");
  EXPECT_EQ(gaps({jump(40, 60, "skip"), jump(60, 40, "rewind")}), "");
  EXPECT_EQ(gaps({jump(40, 60, "skip"), jump(60, 20, "rewind"), jump(30, 45, "skip")}),
            "40-45 skip ");
  EXPECT_EQ(gaps({jump(60, 20, "rewind"), jump(30, 70, "skip")}), "60-70 skip ");
  EXPECT_EQ(gaps({jump(40, 60, "skip"), jump(70, 20, "rewind"), jump(50, 55, "skip")}),
            "50-55 skip ");
  EXPECT_EQ(gaps({jump(40, 60, "skip"), jump({}, 10, "first_start")}), "0-10 first_start ");
}

TEST(LeftOut, ExplainsAnOffsetWithinOnly) {
  const LeftOut left_out({jump(40, 60, "skip"), jump(70, 80, "log_start")});
  for (const int offset : {39, 60, 69, 80}) EXPECT_EQ(left_out.at(offset), nullptr) << offset;
  for (const int offset : {40, 59}) EXPECT_EQ(left_out.at(offset)->cause, "skip") << offset;
  for (const int offset : {70, 79}) EXPECT_EQ(left_out.at(offset)->cause, "log_start") << offset;
}

TEST(Fate, OfWhatWasLeftOutIsSkippedUnlessMoreIsKnown) {
  Standing here = standing();
  here.left_out = LeftOut({jump(40, 60, "skip")});
  const auto verdict = [&](const Facts& facts) { return classify(here, facts); };
  EXPECT_EQ(verdict(record()), skipped);
  EXPECT_EQ(verdict(old(record())), skipped);
  EXPECT_EQ(verdict(derived(key::Refusal{"missing_key", ""})), skipped);
  EXPECT_EQ(verdict(held("completed", 40, other)), skipped);
  EXPECT_EQ(verdict(gone(InKafka::deleted)), skipped);
  EXPECT_EQ(verdict(held("completed", 50)), completed);
  EXPECT_EQ(verdict(held("completed", 40)), duplicate);
  EXPECT_EQ(verdict(dead(record())), dead_letter);
  EXPECT_EQ(verdict(gone(InKafka::no_record)), not_a_message);
  here.checkpoint = 50;  // it comes again
  EXPECT_EQ(verdict(record()), in_flight);
  EXPECT_EQ(tell(here, record(), skipped), "left out by anna at then (skip from 40 to 60): why");
}

}  // namespace
}  // namespace hapax::app
