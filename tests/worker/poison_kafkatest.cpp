// Nothing that is wrong with one message stops another order key, or those behind it for good.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/site.hpp"

namespace hapax::support {
namespace {

struct Poison {
  std::string name;
  std::string reason;  // of its dead letter
  nlohmann::json told = {};
  void (*spoil)(Outgoing& record) = nullptr;
};

std::vector<Poison> poisons() {
  const auto told = [](const char* what) { return nlohmann::json{{"do", what}}; };
  return {
      {"reject", "rejected", told("reject")},
      {"exception", "attempts_exhausted", told("fail")},
      {"no std::exception", "attempts_exhausted", told("throw 42")},
      {"SQL error", "attempts_exhausted", told("divide by 0")},
      {"swallowed SQL error", "attempts_exhausted", told("swallow")},
      {"result too large", "rejected", told("large result")},
      {"ends its backend", "attempts_exhausted", told("end backend")},
      {"sleeps too long", "attempts_exhausted", {{"do", "doze"}, {"ms", 1'200}}},
      {"not JSON", "rejected", {}, [](Outgoing& record) { record.payload = "{\xff"; }},
      {"tombstone", "tombstone", {}, [](Outgoing& record) { record.payload = std::nullopt; }},
      {"no key", "missing_key", {}, [](Outgoing& record) { record.headers.clear(); }},
      {"two keys",
       "ambiguous_key",
       {},
       [](Outgoing& record) { record.headers.emplace_back("idempotency-key", "another"); }},
      {"drift",
       "payload_drift",
       {},
       [](Outgoing& record) {
         record.headers = {{"idempotency-key", "p0"}};
       }},
  };
}

constexpr int kBetween = 20;  // good ones after each poison

TEST(Poison, OfEachKindHoldsNoOtherOrderKeyAndItsOwnOnlyUntilItIsGivenUp) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  const auto worker = site.worker(
      "w", {{"postgres", {{"idle_in_transaction_timeout", "1s"}}},
            {"route", {{"retry", {{"max_attempts", 2}, {"first", "1h"}, {"max", "1h"}}}}}});
  int good = 0;
  site.pay(producer, good++, 1);
  site.await_booked(good);  // before the other payload for its key, which has another order key
  std::string reasons;
  int number = 1'000'000;
  const std::vector<Poison> all = poisons();
  for (const Poison& poison : all) {
    Outgoing bad = site.payment(++number, poison.told);
    bad.key = poison.name;
    if (poison.spoil != nullptr) poison.spoil(bad);
    producer.produce(bad);
    Outgoing behind = site.payment(good++);
    behind.key = poison.name;
    producer.produce(behind);
    site.pay(producer, good, kBetween);
    good += kBetween;
    reasons += (reasons.empty() ? "" : "\n") + poison.reason;
  }
  const auto failing = std::ranges::count(all, "attempts_exhausted", &Poison::reason);
  // Each that failed waits for an hour, and with it only the one behind it.
  site.await("SELECT count(*) FROM hapax.attempts", std::to_string(failing));
  site.await("SELECT count(*) FROM payments", std::to_string(good - failing));
  EXPECT_EQ(worker->count("halted"), 0U);
  EXPECT_EQ(worker->count("postgres_down"), 0U) << "a message's doing was taken for an outage";
  expect_leaves(*worker);
  site.database().run("UPDATE hapax.attempts SET next_try = now()");
  worker->start_again();
  site.await_no_lag();
  site.expect_exact(good, static_cast<int>(all.size()));
  EXPECT_EQ(site.database().value("SELECT reason FROM hapax.dead_letters ORDER BY kafka_offset"),
            reasons);
  EXPECT_EQ(worker->count("halted"), 0U);
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
