// Handlers that kill the process, or never come back. The message that does it is named and given
// up, and no neighbour is blamed. The test restarts the worker as an orchestrator does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kDeathPayments = 60;
constexpr int kPoisonOffset = 20;  // the offset
constexpr int kMostLives = 12;

struct Death {
  const char* by;
  nlohmann::json patch;  // beside the static membership, which spares each life a session timeout
  int lives;             // the least that it takes
  const char* letter;    // reason|attempts
};

void PrintTo(const Death& death, std::ostream* out) { *out << death.by; }

class HandlerDeath : public testing::TestWithParam<Death> {
 protected:
  // One partition, so that all are neighbours.
  void send(const Site& site) const {
    Producer producer(site.bootstrap());
    site.pay(producer, 0, kPoisonOffset);
    Outgoing poison = site.payment(1'000'000, {{"do", GetParam().by}});
    poison.key = "poison";
    producer.send(poison);
    site.pay(producer, kPoisonOffset, kDeathPayments - kPoisonOffset);
  }
};

TEST_P(HandlerDeath, IsTheDeathOfItsMessageAndOfNoNeighbour) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  send(site);
  nlohmann::json patch = GetParam().patch;
  patch["kafka"]["group.instance.id"] = "w";
  const auto worker = site.worker("w", patch);
  int lives = 1;
  while (worker->dies_before("dead_letter")) {
    ASSERT_LT(lives, kMostLives) << worker->output();
    worker->start_again();
    ++lives;
  }
  EXPECT_GE(lives, GetParam().lives);
  site.await_no_lag();
  site.expect_exact(kDeathPayments, 1);
  EXPECT_EQ(site.database().value("SELECT kafka_offset FROM hapax.dead_letters"),
            std::to_string(kPoisonOffset));
  EXPECT_EQ(site.database().value("SELECT reason, attempts FROM hapax.dead_letters"),
            GetParam().letter);
  EXPECT_EQ(site.database().value("SELECT kafka_offset FROM hapax.attempts"),
            std::to_string(kPoisonOffset))
      << "a neighbour was blamed";
  expect_leaves(*worker);
}

nlohmann::json crashes(int max_crashes) {
  return {{"route", {{"retry", {{"max_crashes", max_crashes}}}}}};
}

// Each slow one that settles moves the checkpoint, with the one that kills still far ahead of it.
// The parameter: quick ones behind each slow one, which the next life finds done.
class DeathAhead : public testing::TestWithParam<int> {};

TEST_P(DeathAhead, BehindSlowMessagesDoesNotCostALifeForEachOfThem) {
  HAPAX_NEEDS_KAFKA();
  constexpr int kSlow = 30;
  Site site(1);
  Producer producer(site.bootstrap());
  int sent = 0;
  const auto send = [&](const nlohmann::json& told) {
    Outgoing message = site.payment(sent, told);
    message.key = "k" + std::to_string(sent++);  // each an order key, so that lanes take them all
    producer.produce(message);
  };
  for (int n = 0; n < kSlow; ++n) {
    send({{"do", "sleep"}, {"seconds", 0.1}});
    for (int quick = 0; quick < GetParam(); ++quick) send({});
  }
  send({{"do", "abort"}});
  producer.flush();
  nlohmann::json patch = crashes(1);
  patch["route"]["batch"] = 20;
  patch["worker"]["checkpoint_interval"] = "50ms";
  patch["kafka"]["group.instance.id"] = "w";
  const auto worker = site.worker("w", patch);
  // On a busy machine messages come slowly. Then the first lives make a little progress.
  std::size_t cautious = 0;
  for (int lives = 1; worker->dies_before("dead_letter"); ++lives) {
    cautious += worker->count("cautious");
    ASSERT_LT(lives, kSlow) << worker->output();
    worker->start_again();
  }
  cautious += worker->count("cautious");
  EXPECT_LE(cautious, 3U) << "one to the end, and one or two to give it up";
  site.await_no_lag();
  site.expect_exact(sent - 1, 1);
  expect_leaves(*worker);
}

// The backlog of others is queued first, and comes back by the thousand.
TEST(DeathBeside, ABacklogOfOtherPartitionsDoesNotEndCaution) {
  HAPAX_NEEDS_KAFKA();
  constexpr int kFourPartitions = 4, kBacklog = 12'000;
  Site site(kFourPartitions);
  Producer producer(site.bootstrap());
  for (int n = 0; n <= kBacklog; ++n) {
    const bool kills = n == kBacklog;
    Outgoing message = site.payment(n, {{"do", kills ? "abort" : "sleep"}, {"seconds", 0.002}});
    message.partition = kills ? kFourPartitions - 1 : n % (kFourPartitions - 1);
    message.key = "k" + std::to_string(n);
    producer.produce(message);
  }
  producer.flush();
  nlohmann::json patch = crashes(1);
  patch["worker"]["queue"]["messages"] = 400;
  patch["kafka"]["group.instance.id"] = "w";
  const auto worker = site.worker("w", patch);
  int lives = 1;
  for (; worker->dies_before("dead_letter"); ++lives) {
    ASSERT_LT(lives, kMostLives) << worker->output();
    worker->start_again();
  }
  EXPECT_LE(lives, 4);
  site.await_no_lag();
  site.expect_exact(kBacklog, 1);
  expect_leaves(*worker);
}

INSTANTIATE_TEST_SUITE_P(QuickOnesBetween, DeathAhead, testing::Values(0, 9));

// The shortest there is.
nlohmann::json watched() {
  return {{"postgres", {{"statement_timeout", "500ms"}, {"lock_timeout", "100ms"}}},
          {"worker", {{"handler_timeout", "1s"}}}};
}

// More attempts than crashes, as by default: a handler that hangs is no crash.
nlohmann::json hanging() {
  nlohmann::json patch = watched();
  patch["route"]["retry"] = {{"max_attempts", 4}, {"max_crashes", 2}};
  return patch;
}

INSTANTIATE_TEST_SUITE_P(Each, HandlerDeath,
                         testing::Values(Death{"segfault", crashes(2), 4, "crashed|0"},
                                         Death{"abort", crashes(1), 3, "crashed|0"},
                                         Death{"exit", crashes(1), 3, "crashed|0"},
                                         Death{"hang", hanging(), 5, "attempts_exhausted|4"}),
                         [](const auto& test) { return std::string(test.param.by); });

TEST(Watchdog, EndsTheProcessWithExitCode1AndNamesHandlerAndMessage) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer producer(site.bootstrap());
  producer.send(site.payment(0, {{"do", "hang"}}));
  const auto worker = site.worker("w", watched());
  const sandbox::Exit exit = worker->ended();
  EXPECT_EQ(exit.code, 1) << exit.text();
  const nlohmann::json message = {
      {"handler", "scripted"}, {"topic", site.topic()}, {"partition", 0}, {"offset", 0}};
  EXPECT_EQ(worker->count("handler_hangs", message), 1U) << worker->output();
  EXPECT_EQ(site.database().value("SELECT kafka_offset, count, last_error FROM hapax.attempts"),
            "0|1|the handler ran longer than worker.handler_timeout");
}

}  // namespace
}  // namespace hapax::support
