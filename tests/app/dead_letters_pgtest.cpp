// `hapax dead` as an operator types it: which letters a list and an order are about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "sandbox/temporary_folder.hpp"
#include "support/command.hpp"
#include "support/database.hpp"

namespace hapax::support {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class DeadCommands : public testing::Test {
 protected:
  DeadCommands() {
    const nlohmann::json config = {
        {"kafka", {{"bootstrap.servers", "127.0.0.1:1"}, {"group.id", "g"}}},
        {"postgres", {{"url", database.owner().url}}},
        {"routes",
         {{{"topic", "t"},
           {"handler", "payments"},
           {"plugin", HAPAX_BINARY_DIR "/lib/libpayments.so"},
           {"key", {{"header", "idempotency-key"}}}}}}};
    std::ofstream(file()) << config.dump();
  }
  std::filesystem::path file() const { return folder.path() / "worker.json"; }

  // Its id is one more than that of the letter before.
  void letter(const std::string& key, const std::string& tenant, const std::string& scope = "pay",
              const std::string& reason = "rejected") {
    database.run(
        "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset,"
        " timestamp_type, header_names, header_values, reason, error, attempts, handler,"
        " handler_version, scope, key, tenant, first_at, payload) SELECT 'g', 't', 1, 0, count(*),"
        " 'none', '{}', '{}', '" +
        reason + "', 'no', 1, 'h', '1', '" + scope + "', '" + key + "', '" + tenant +
        "', now(), '{}' FROM hapax.dead_letters");
  }

  Said dead(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "dead");
    return hapax(std::move(arguments), file());
  }
  Said order(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--why", "a test", "--yes"});
    return dead(std::move(arguments));
  }
  // What was discarded, and what is wanted again.
  std::string changed() {
    return database.value(
        "SELECT (SELECT coalesce(string_agg(id::text, ' ' ORDER BY id), '-') FROM"
        " hapax.dead_letters WHERE ended_as = 'discarded'), (SELECT coalesce(string_agg("
        "dead_letter::text, ' ' ORDER BY dead_letter), '-') FROM hapax.replays WHERE ended_at IS"
        " NULL)");
  }

  test::Database database;
  sandbox::TemporaryFolder folder{"dead"};
};

// Anna's and Bert's clients number their payments alike.
TEST_F(DeadCommands, OrdersByKeyChangeNothingUntilTheTenantIsNamed) {
  letter("pay-1", "anna");
  letter("pay-1", "bert");
  const std::vector<std::vector<std::string>> orders = {{"discard", "--key", "pay-1"},
                                                        {"discard", "--key", "pay-1", "--dry-run"},
                                                        {"replay", "--key", "pay-1", "--no-wait"},
                                                        {"replay", "--key", "pay-1", "--cancel"}};
  for (const auto& words : orders) {
    const Said refused = order(words);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.text,
                HasSubstr("in scope \"pay\" tenant \"anna\", scope \"pay\" tenant \"bert\": name "
                          "scope and tenant (--scope, --tenant)"));
  }
  EXPECT_EQ(changed(), "-|-");
  order({"replay", "--key", "pay-1", "--tenant", "bert", "--no-wait"});
  EXPECT_EQ(changed(), "-|2");
  EXPECT_EQ(order({"discard", "--key", "pay-1", "--tenant", "anna"}).code, 0);
  EXPECT_EQ(changed(), "1|2");
  EXPECT_EQ(order({"discard", "--key", "pay-1"}).code, 0) << "only Bert's is open";
  EXPECT_EQ(changed(), "1 2|-");
}

TEST_F(DeadCommands, OrdersByKeyChangeNothingUntilTheScopeIsNamed) {
  letter("k", "", "pay");
  letter("k", "", "refund");
  letter("k", "anna", "refund");
  EXPECT_THAT(order({"discard", "--key", "k"}).text,
              HasSubstr("scope \"pay\", scope \"refund\", scope \"refund\" tenant \"anna\""));
  EXPECT_EQ(order({"discard", "--key", "k", "--scope", "refund"}).code, 2);
  EXPECT_EQ(changed(), "-|-");
  EXPECT_EQ(order({"discard", "--key", "k", "--scope", "refund", "--tenant", ""}).code, 0);
  EXPECT_EQ(changed(), "2|-");
  EXPECT_EQ(order({"discard", "--key", "k", "1", "3"}).code, 0) << "ids name them";
  EXPECT_EQ(changed(), "1 2 3|-");
}

// The number 17 is stored as `:17`, and the text `:17` as `:":17"`.
TEST_F(DeadCommands, OrdersByKeyTakeTheStoredTextBeforeTheProducers) {
  letter(":17", "");
  letter(R"(:":17")", "");
  EXPECT_EQ(order({"discard", "--key", ":17"}).code, 0);
  EXPECT_EQ(changed(), "1|-");
  EXPECT_EQ(order({"discard", "--key", ":17"}).code, 0);
  EXPECT_EQ(changed(), "1 2|-");
}

// An operator has decided that message 2 shall not run. The rollback's order is about all others.
TEST_F(DeadCommands, OrdersLeaveOutWhatAnOperatorSkippedUnlessTheyNameIt) {
  letter("k1", "");
  letter("k2", "", "pay", "skipped_by_operator");
  const Said replay = order({"replay", "--topic", "t", "--since", "1h", "--no-wait"});
  EXPECT_THAT(replay.text, AllOf(HasSubstr("wanted: 1"), HasSubstr("left out: 1 that an operator"),
                                 HasSubstr("--reason skipped_by_operator")));
  EXPECT_EQ(changed(), "-|1");
  EXPECT_THAT(order({"replay", "--key", "k2", "--no-wait"}).text,
              AllOf(HasSubstr("left out: 1"), HasSubstr("no open dead letter")));
  order({"replay", "--all", "--no-wait"});
  order({"discard", "--all"});
  EXPECT_EQ(changed(), "1|-");
  EXPECT_THAT(order({"replay", "--reason", "skipped_by_operator", "--no-wait"}).text,
              Not(HasSubstr("left out")));
  EXPECT_EQ(changed(), "1|2");
  order({"replay", "--all", "--cancel"});
  EXPECT_EQ(changed(), "1|-");
  order({"replay", "t/0/1", "--no-wait"});
  EXPECT_EQ(changed(), "1|2");
  order({"discard", "2"});
  EXPECT_EQ(changed(), "1 2|-");
}

TEST_F(DeadCommands, ListsAndDryRunsTellTheTenantIfThereIsOne) {
  letter("pay-1", "");
  EXPECT_THAT(dead({"list"}).text, AllOf(HasSubstr("pay-1"), Not(HasSubstr("TENANT"))));
  letter("pay-1", "anna");
  letter("pay-2", "bert");
  EXPECT_THAT(dead({"list"}).text,
              AllOf(HasSubstr("TENANT"), HasSubstr("anna"), HasSubstr("bert")));
  EXPECT_THAT(dead({"list", "--tenant", "anna"}).text,
              AllOf(HasSubstr("pay-1"), Not(HasSubstr("pay-2"))));
  EXPECT_THAT(dead({"list", "--key", "pay-1", "--tenant", "bert"}).text, HasSubstr("fits"));
  EXPECT_THAT(dead({"list", "--scope", "refund"}).text, HasSubstr("fits"));
  EXPECT_THAT(dead({"export", "--key", "pay-1", "--tenant", "anna"}).text,
              HasSubstr("exported: 1"));
  EXPECT_THAT(order({"discard", "--tenant", "anna", "--dry-run"}).text,
              AllOf(HasSubstr("TENANT"), HasSubstr("anna"), HasSubstr("1 would be discarded")));
  EXPECT_EQ(changed(), "-|-");
}

}  // namespace
}  // namespace hapax::support
