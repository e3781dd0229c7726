// What becomes of the batch that PostgreSQL holds, by the marker that Kafka holds.
#include "outbox/transaction.hpp"

#include <gtest/gtest.h>

namespace hapax::outbox {
namespace {

TEST(JudgeBatch, SentMeansTheSameTokenAndNothingElse) {
  const std::optional<store::OpenBatch> open = store::OpenBatch{7, "mine", "before", 3};
  using kafka::Marker;
  EXPECT_EQ(judge(open, Marker{7, "mine"}), Verdict::sent);
  EXPECT_EQ(judge(open, Marker{6, "before"}), Verdict::unsent);
  EXPECT_EQ(judge(open, Marker{2, "before"}), Verdict::unsent) << "numbers may have gaps";
  EXPECT_EQ(judge(open, Marker{7, "another"}), Verdict::marker_lost);
}

// Kafka counts on from a state of PostgreSQL that is lost.
TEST(JudgeBatch, ALaterMarkerMeansThatPostgresLostItsTail) {
  EXPECT_EQ(judge(store::OpenBatch{7, "mine", "before", 3}, kafka::Marker{8, "another"}),
            Verdict::tail_lost);
}

TEST(JudgeBatch, AMarkerThatIsGoneOrOlderThanTheOneBeforeTellsNothing) {
  const std::optional<store::OpenBatch> open = store::OpenBatch{7, "mine", "before", 3};
  EXPECT_EQ(judge(open, std::nullopt), Verdict::marker_lost);
  EXPECT_EQ(judge(open, kafka::Marker{5, "older"}), Verdict::marker_lost);
  EXPECT_EQ(judge(open, kafka::Marker{900, ""}), Verdict::marker_lost) << "a tool moved it";
}

TEST(JudgeBatch, WithoutAnOpenBatchNoMarkerMatters) {
  EXPECT_EQ(judge(std::nullopt, std::nullopt), Verdict::none_open);
  EXPECT_EQ(judge(std::nullopt, kafka::Marker{5, "any"}), Verdict::none_open);
}

}  // namespace
}  // namespace hapax::outbox
