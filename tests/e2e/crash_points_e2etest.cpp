// The crash table: a worker is killed at each named point, and starts again. Afterwards each effect
// is there once, nothing is left behind, and the poison is one dead letter.
#include <gtest/gtest.h>

#include <optional>
#include <string_view>

#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kPayments = 40;

struct CrashCase {
  const char* at;                     // name:how often it is reached, in a first life
  std::optional<bool> after_effects;  // whether the first life has come as far as to book something
  bool by_position = false;
};

void PrintTo(const CrashCase& crash, std::ostream* out) { *out << crash.at; }

std::string name_of(const testing::TestParamInfo<CrashCase>& test) {
  const std::string at = test.param.at;
  return at.substr(0, at.find(':'));
}

class CrashAt : public testing::TestWithParam<CrashCase> {};

TEST_P(CrashAt, EachEffectStandsOnceAndNothingIsLeftBehind) {
  HAPAX_NEEDS_KAFKA();
  const auto [at, after_effects, by_position] = GetParam();
  Site site(2);
  Producer producer(site.bootstrap());
  // One that is rejected, one that fails each time, and good ones before, between and behind. The
  // slow first one is open at the first checkpoint, while those behind it are settled.
  producer.send(site.payment(0, {{"do", "sleep"}, {"seconds", 0.5}}));
  site.pay(producer, 1, kPayments / 2 - 1);
  producer.send(site.payment(1'000'000, {{"do", "reject"}}));
  producer.send(site.payment(1'000'001, {{"do", "fail"}}));
  site.pay(producer, kPayments / 2, kPayments / 2);

  nlohmann::json patch;
  // While its one lane sleeps, the others pile up.
  if (std::string_view(at).starts_with("batch_"))
    patch = {{"route", {{"batch", 20}}}, {"worker", {{"lanes", 1}}}};
  if (by_position) patch["route"]["key"] = "position";
  const auto worker = site.worker("w", patch, at);
  EXPECT_EQ(worker->ended().signal, SIGKILL) << worker->output();
  if (after_effects) {
    EXPECT_EQ(site.database().value("SELECT count(*) > 0 FROM payments"),
              *after_effects ? "t" : "f");
  }
  worker->start_again();
  site.await_no_lag();

  site.expect_exact(kPayments, 2, by_position);
  EXPECT_EQ(site.database().value("SELECT reason, attempts FROM hapax.dead_letters ORDER BY 1"),
            "attempts_exhausted|2\nrejected|1");
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.idempotency_keys "
                                  "WHERE status = 'failed'"),
            "2");
  expect_leaves(*worker);
  EXPECT_EQ(site.database().count("SELECT count(*) FROM hapax.positions"), 0);
  const Said audit = hapax({"audit", "--topic", site.topic()}, worker->config());
  EXPECT_EQ(audit.code, 0) << audit.text;
}

INSTANTIATE_TEST_SUITE_P(
    CrashTable, CrashAt,
    testing::Values(CrashCase{"taken:1", false}, CrashCase{"start_committed:1", false},
                    CrashCase{"start_agreed:1", false}, CrashCase{"received:1", false},
                    CrashCase{"claimed:1", false}, CrashCase{"handled:1", false},
                    CrashCase{"committed:5", true}, CrashCase{"attempt_recorded:1", true},
                    CrashCase{"batch_claimed:1", {}}, CrashCase{"batch_handled:1", {}},
                    CrashCase{"batch_committed:1", true}, CrashCase{"gave_up:1", true},
                    CrashCase{"checkpoint_begun:1", true}, CrashCase{"checkpointed:1", true}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    CrashTableByPosition, CrashAt,
    testing::Values(CrashCase{"claimed:1", false, true}, CrashCase{"handled:1", false, true},
                    CrashCase{"committed:5", true, true},
                    CrashCase{"attempt_recorded:1", true, true},
                    CrashCase{"batch_claimed:1", {}, true}, CrashCase{"batch_handled:1", {}, true},
                    CrashCase{"batch_committed:1", true, true}, CrashCase{"gave_up:1", true, true},
                    CrashCase{"checkpoint_begun:1", true, true},
                    CrashCase{"checkpointed:1", true, true}),
    name_of);

}  // namespace
}  // namespace hapax::support
