// A broken deploy must not turn the topic into dead letters. If so many in a row have one cause,
// the route halts until an operator resumes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using testing::HasSubstr;

constexpr int kBreaker = 5;

// One lane on one partition: "in a row" is the order of the offsets.
nlohmann::json breaking() {
  return {{"route", {{"breaker", kBreaker}}},
          {"worker", {{"lanes", 1}, {"ordering", "partition"}}}};
}

// Each names itself: that makes no cause of its own.
Outgoing rejected(const Site& site, int number, const std::string& why = "no account") {
  return site.payment(1'000'000 + number,
                      {{"do", "reject"}, {"why", why + " a-" + std::to_string(number)}});
}

constexpr const char* kHalts = "SELECT reason, whole_route, ended_by FROM hapax.halts";

TEST(Breaker, HaltsTheRouteAfterDeadLettersInARowForOneCauseUntilAnOperatorResumesIt) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 10);
  for (int n = 0; n < kBreaker; ++n) producer.produce(rejected(site, n));
  const auto worker = site.worker("w", breaking());
  worker->await("halted", {{"reason", "breaker"}, {"whole_route", true}});
  site.pay(producer, 10, 10);
  worker->await_not_ready("halted: breaker");
  site.await(kHalts, "breaker|t|null");
  EXPECT_EQ(site.database().count("SELECT count(*) FROM payments"), 10);
  EXPECT_THAT(hapax({"status"}, worker->config()).text,
              testing::AllOf(HasSubstr("halted: breaker"), HasSubstr("rejected")));

  const std::string said = hapax({"resume", site.topic(), "--decision", "retry", "--why",
                                  "rolled back", "--url", site.database().owner().url},
                                 worker->config())
                               .text;
  EXPECT_THAT(said, HasSubstr("resumed"));
  worker->await("resumed");
  site.await_no_lag();
  EXPECT_EQ(site.database().value(kHalts), "breaker|t|operator");
  site.expect_exact(20, kBreaker);
  worker->await_ready();
  expect_leaves(*worker);
}

// Two causes in turn, more often than the breaker allows of one; and one cause, but a good message
// in time.
TEST(Breaker, LetsDeadLettersOfDifferentCausesAndOnesWithGoodMessagesBetweenPass) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  int bad = 0;
  for (int n = 0; n < 2 * kBreaker; ++n, ++bad)
    producer.produce(rejected(site, n, n % 2 == 0 ? "no account" : "no such currency"));
  site.pay(producer, 0, 1);
  for (int good = 1; good < 4; ++good) {
    for (int n = 1; n < kBreaker; ++n, ++bad) producer.produce(rejected(site, 100 * good + n));
    site.pay(producer, good, 1);
  }
  const auto worker = site.worker("w", breaking());
  site.await_no_lag();
  site.expect_exact(4, bad);
  EXPECT_EQ(worker->count("halted"), 0U);
  expect_leaves(*worker);
}

// Bad input is no broken deploy. When Kafka gives it out again, its letters stand already.
TEST(Breaker, CountsNothingThatNeverReachedTheHandlerAndNoLetterTwice) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 1);
  for (int n = 0; n < 2 * kBreaker; ++n) {
    Outgoing nameless = site.payment(1'000'000 + n);
    nameless.headers.clear();
    producer.produce(nameless);
    producer.produce(site.payment(0, {{"drifted", n}}));
  }
  site.pay(producer, 1, 1);
  const auto letters = [&](const char* reason, int count) {
    return "hapax_dead_letters_total{reason=\"" + std::string(reason) + "\",topic=\"" +
           site.topic() + "\"} " + std::to_string(count);
  };
  const auto worker = site.worker("w", breaking());
  site.await_no_lag();
  site.expect_exact(2, 4 * kBreaker);
  worker->await_metric(letters("missing_key", 2 * kBreaker));
  worker->await_metric(letters("payload_drift", 2 * kBreaker));

  const auto rewound = hapax({"offsets", "rewind", site.topic() + "/0", "--to", "0", "--why",
                              "test", "--url", site.database().owner().url},
                             worker->config());
  ASSERT_EQ(rewound.code, 0) << rewound.text;
  worker->await_metric("hapax_messages_total{handler=\"scripted\",outcome=\"failed\",topic=\"" +
                       site.topic() + "\"} " + std::to_string(8 * kBreaker));
  worker->await_metric(letters("missing_key", 2 * kBreaker));
  worker->await_metric(letters("payload_drift", 2 * kBreaker));
  site.pay(producer, 2, 1);
  site.await_no_lag();
  site.expect_exact(3, 4 * kBreaker);
  EXPECT_EQ(worker->count("halted"), 0U);
  expect_leaves(*worker);
}

// What the other lanes ran at that moment is still given up on, and nothing more.
TEST(Breaker, StopsInTheMiddleOfABatch) {
  constexpr int kLanes = 2;
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  for (int n = 0; n < 40 * kBreaker; ++n) producer.produce(rejected(site, n));
  producer.flush();
  const auto worker = site.worker("w", {{"route", {{"breaker", kBreaker}, {"batch", 50}}},
                                        {"worker", {{"lanes", kLanes}, {"ordering", "none"}}}});
  worker->await("halted", {{"reason", "breaker"}, {"whole_route", true}});
  site.await(kHalts, "breaker|t|null");
  expect_leaves(*worker);
  const int letters = site.database().count("SELECT count(*) FROM hapax.dead_letters");
  EXPECT_GE(letters, kBreaker);
  EXPECT_LE(letters, kBreaker + kLanes - 1);
  EXPECT_EQ(site.database().count("SELECT count(*) FROM hapax.halts"), 1);
}

}  // namespace
}  // namespace hapax::support
