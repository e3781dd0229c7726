// What fails again and again waits by itself, keeps its count, and ends as one dead letter.
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

nlohmann::json retrying(const char* first, int max_attempts) {
  return {
      {"route", {{"retry", {{"max_attempts", max_attempts}, {"first", first}, {"max", first}}}}}};
}

// One partition: a message of account a0 that fails each time, one behind it, then other accounts'.
void send_poison_first(const Site& site) {
  Producer producer(site.bootstrap());
  Outgoing poison = site.payment(1'000'000, {{"do", "fail"}});
  ASSERT_EQ(poison.key, "a0");
  producer.produce(poison);
  site.pay(producer, 0, 30);
}

TEST(Retry, HoldsItsOwnOrderKeyAndNoOther) {
  Site site = Site::on_mock_cluster(1);
  send_poison_first(site);
  const auto worker = site.worker("w", retrying("1h", 5));
  const nlohmann::json failed = worker->await("attempt_failed", {{"handler", "scripted"}});
  EXPECT_EQ(failed.at("sentence"), "a message failed and waits; `hapax status` shows the error");
  site.await_booked(27);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM payments WHERE account = 'a0'"), "0")
      << "what is behind the failed one waits for it";
  EXPECT_EQ(site.database().value("SELECT count FROM hapax.attempts"), "1");
  expect_leaves(*worker);
  EXPECT_EQ(site.database().value("SELECT next_offset, highest_settled FROM hapax.checkpoints"),
            "0|31")
      << "the checkpoint waits, too, and the leave says what is settled beyond it";
}

TEST(Retry, KeepsItsCountOverARestartAndThenIsADeadLetterThatHoldsNoMessage) {
  Site site = Site::on_mock_cluster(1);
  send_poison_first(site);
  const auto worker = site.worker("w", retrying("1h", 2));
  worker->await("attempt_failed", {{"attempts", 1}});
  expect_leaves(*worker);
  site.database().run("UPDATE hapax.attempts SET next_try = now()");  // an hour later
  worker->start_again();
  EXPECT_FALSE(worker->await("dead_letter", {{"reason", "attempts_exhausted"}, {"attempts", 2}})
                   .contains("error"))
      << "it may quote the message, and log.error_text is off";
  site.await_no_lag();
  site.expect_exact(30, 1);
  EXPECT_EQ(worker->count("attempt_failed"), 0U);
  expect_leaves(*worker);
}

// PostgreSQL ends the transaction of a worker that stands still after idle_in_transaction_timeout.
// Until then other messages cannot have the rows that it has locked.
TEST(Retry, CountsNoRunThatWaitedForARowOfAWorkerThatStandsStill) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  producer.produce(site.payment(0, {{"do", "lock"}, {"ms", 1500}}));
  producer.flush();
  const auto sleeper =
      site.worker("sleeper", {{"postgres", {{"idle_in_transaction_timeout", "3s"}}}});
  site.await("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted", "1");
  sleeper->freeze();
  producer.produce(site.payment(1, {{"do", "hold"}}));
  producer.produce(site.payment(2));
  producer.flush();
  const auto heir = site.worker(
      "heir", {{"kafka", {{"group.id", "heirs"}}}, {"postgres", {{"lock_timeout", "100ms"}}}});
  site.await("SELECT (SELECT count(*) FROM payments) + (SELECT count(*) FROM hapax.dead_letters)",
             "3");
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.dead_letters"), "0");
  EXPECT_EQ(heir->count("attempt_failed"), 0U);
  sleeper->kill();
  expect_leaves(*heir);
}

// `offsets forget-group` leaves attempts and letters, and the topic may have been made again since.
TEST(Retry, CountsNoRunOfAGroupThatWasForgotten) {
  Site site = Site::on_mock_cluster(1);
  site.database().run(
      "INSERT INTO hapax.attempts (group_id, topic, generation, partition, kafka_offset, count,"
      " last_error, handler, next_try) VALUES ('" +
      site.group() + "', '" + site.topic() + "', 1, 0, 4, 2, 'no', 'h', now())");
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 10);
  const auto worker = site.worker("w");
  site.await_no_lag();
  site.expect_exact(10);
  EXPECT_EQ(site.database().value("SELECT generation FROM hapax.checkpoints"), "2");
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
