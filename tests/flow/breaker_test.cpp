#include "flow/breaker.hpp"

#include <gtest/gtest.h>

#include "observe/escape.hpp"

namespace hapax::flow {
namespace {

Outcome gave_up(const std::string& reason, const std::string& detail = "",
                const std::string& sqlstate = "") {
  return {.result = Result::failed, .reason = reason, .detail = detail, .sqlstate = sqlstate};
}

TEST(Breaker, TakesForOneCauseWhatHasOneSqlstateOrOneErrorButForWordsWithDigits) {
  const auto is_one = [](const Outcome& a, const Outcome& b) { return cause_of(a) == cause_of(b); };
  EXPECT_TRUE(is_one(gave_up("rejected", "order 4711: no account a-12"),
                     gave_up("rejected", "order 4712: no account b-9")));
  EXPECT_FALSE(is_one(gave_up("rejected", "no account"), gave_up("rejected", "account closed")));
  EXPECT_TRUE(is_one(gave_up("attempts_exhausted", "Key (id)=(a) exists", "23505"),
                     gave_up("attempts_exhausted", "Key (id)=(b) exists", "23505")));
  EXPECT_FALSE(is_one(gave_up("attempts_exhausted", "x", "23505"),
                      gave_up("attempts_exhausted", "x", "23503")));
  EXPECT_FALSE(is_one(gave_up("rejected", "x"), gave_up("attempts_exhausted", "x")));
}

TEST(Breaker, CountsOnlyWhatRan) {
  for (const char* reason : {"missing_key", "not_json", "tombstone", "payload_drift", "redelivered",
                             "skipped_by_operator", "bad_key"})
    EXPECT_EQ(cause_of(gave_up(reason, "x", "22000")), "") << reason;
  for (const char* reason : {"rejected", "attempts_exhausted", "crashed"})
    EXPECT_NE(cause_of(gave_up(reason)), "") << reason;
  EXPECT_EQ(cause_of({.result = Result::retry, .reason = "rejected"}), "");
}

TEST(Breaker, OpensAtItsLimitTellsItsCauseOnceAndStaysOpenUntilItIsClosed) {
  Breaker breaker(2);
  for (int round = 0; round < 2; ++round) {
    breaker.learn(gave_up("rejected", "x"));
    breaker.learn(Outcome::of(Result::duplicate));
    breaker.learn(gave_up("missing_key"));
    EXPECT_FALSE(breaker.is_open());
    EXPECT_EQ(breaker.take_cause(), std::nullopt);
    breaker.learn(gave_up("rejected", "x"));
    EXPECT_TRUE(breaker.is_open());
    EXPECT_EQ(breaker.take_cause(), "rejected: x");
    EXPECT_EQ(breaker.take_cause(), std::nullopt);
    breaker.learn(Outcome::of(Result::completed));
    EXPECT_TRUE(breaker.is_open());
    breaker.close();
    EXPECT_FALSE(breaker.is_open());
  }
}

TEST(Breaker, TellsItsCauseThoughAPartitionStartedMeanwhile) {
  Breaker breaker(1);
  breaker.learn(gave_up("rejected", "x"));
  breaker.close();
  EXPECT_FALSE(breaker.is_open());
  EXPECT_EQ(breaker.take_cause(), "rejected: x");
  EXPECT_EQ(breaker.take_cause(), std::nullopt);
}

TEST(Breaker, CutsACauseBetweenTwoCharacters) {
  std::string text;
  for (int n = 0; n < 100; ++n) text += "\u20ac";  // of three bytes
  for (int shift = 0; shift < 3; ++shift, text.insert(0, "a")) {
    const std::string cause = cause_of(gave_up("rejected", text));
    EXPECT_EQ(observe::to_valid_utf8(cause), cause) << shift;
  }
}

TEST(Breaker, BeginsAgainAtAMessageThatCompletedAndAtAnotherCause) {
  Breaker breaker(2);
  for (int round = 0; round < 5; ++round) {
    breaker.learn(gave_up("rejected", "x"));
    breaker.learn(Outcome::of(Result::completed));
    breaker.learn(gave_up("rejected", "y"));
  }
  EXPECT_FALSE(breaker.is_open());
}

TEST(Breaker, OfZeroNeverOpens) {
  Breaker breaker(0);
  for (int i = 0; i < 1000; ++i) breaker.learn(gave_up("rejected", "x"));
  EXPECT_FALSE(breaker.is_open());
}

}  // namespace
}  // namespace hapax::flow
