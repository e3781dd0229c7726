// A broken deploy must not drain the topic into dead letters: so many in a row for one cause halt
// the route, until somebody resumes it.
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

Outgoing rejected(const Site& site, int number) {
  return site.payment(1'000'000 + number, {{"do", "reject"}});
}

constexpr const char* kHalts = "SELECT reason, whole_route, ended_by FROM hapax.halts";

TEST(Breaker, HaltsTheRouteAfterDeadLettersInARowForOneCauseUntilSomebodyResumesIt) {
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
  for (int n = 0; n < 2 * kBreaker; ++n, ++bad) {
    Outgoing record = rejected(site, n);
    if (n % 2 == 1) record.headers.clear();
    producer.produce(record);
  }
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

}  // namespace
}  // namespace hapax::support
