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

// Its key was forgotten, or its replay taken back, and it was run and given up on once more.
TEST_F(DeadCommands, GoByTheLastTimeThatAMessageWasGivenUpOn) {
  letter("old", "");
  letter("again", "");
  database.run(
      "UPDATE hapax.dead_letters SET created_at = now() - interval '9 days';"
      "INSERT INTO hapax.attempts (group_id, topic, generation, partition, kafka_offset, count,"
      " last_error, handler, next_try) VALUES ('g', 't', 1, 0, 1, 1, 'no', 'h', now())");
  for (const std::vector<std::string>& by : {std::vector<std::string>{}, {"--key", "again"}}) {
    std::vector<std::string> list = {"list", "--since", "1h", "--json"};
    list.insert(list.end(), by.begin(), by.end());
    EXPECT_THAT(dead(list).text, HasSubstr("\"again\""));
    list[1] = "--until";
    EXPECT_THAT(dead(list).text, Not(HasSubstr("\"again\"")));
  }
  order({"discard", "--until", "7d"});
  EXPECT_EQ(changed(), "1|-");
  order({"replay", "--since", "2h", "--no-wait"});
  EXPECT_EQ(changed(), "1|2");
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

// Letters of keys k1, k2, … of scope `payments`, whose route calls to the outside.
class DeadCalls : public DeadCommands {
 protected:
  DeadCalls() {
    auto config = nlohmann::json::parse(std::ifstream(file()));
    config["routes"][0]["outside"] = {{"repeat", "never"}};
    std::ofstream(file()) << config.dump();
  }
  // What became of the call for a new letter.
  void call(const std::string& status) {
    const std::string n = std::to_string(database.count("SELECT count(*) FROM hapax.dead_letters"));
    letter("k" + n, "", "payments", "outcome_unknown");
    database.run(
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
        "partition, kafka_offset, expires_at, token, calls, called_at, alone, crashes) VALUES ('k" +
        n + "', 'payments', '" + status + "', 'g', 't', 1, 0, " + n +
        ", 'infinity', 100, 1, now(), false, 0)");
  }
  void decide(const std::string& key, std::vector<std::string> decision) {
    decision.insert(decision.begin(), {"outside", "decide", key, "--why", "seen", "--yes"});
    const Said said = hapax(std::move(decision), file());
    ASSERT_EQ(said.code, 0) << said.text;
  }
};

// Without the letter no worker would carry out a decision to book or to call.
TEST_F(DeadCalls, ThatAreNotDoneKeepTheirLetterFromADiscard) {
  for (const char* status : {"unknown", "started", "answered", "completed", "failed"}) call(status);
  const Said by_id = order({"discard", "1", "2", "3"});
  EXPECT_EQ(by_id.code, 1);
  EXPECT_THAT(by_id.text,
              AllOf(HasSubstr("discarded: 0"), HasSubstr("dead letter 1 is left alone"),
                    HasSubstr("is `unknown`. First decide: hapax outside decide 'k0' --scope "
                              "'payments', with --happened or --did-not-happen"),
                    HasSubstr("is `started`"), HasSubstr("is `answered`")));
  EXPECT_THAT(order({"discard", "--all", "--dry-run"}).text,
              AllOf(HasSubstr("2 would be discarded"), HasSubstr("left alone: 3, as their calls")));
  EXPECT_EQ(changed(), "-|-");
  const Said by_filter = order({"discard", "--reason", "outcome_unknown"});
  EXPECT_EQ(by_filter.code, 0);
  EXPECT_THAT(by_filter.text,
              AllOf(HasSubstr("discarded: 2"), HasSubstr("left alone: 3, as their calls")));
  EXPECT_EQ(changed(), "4 5|-");
  decide("k0", {"--give-up"});
  EXPECT_EQ(changed(), "1 4 5|-");
}

// Another one with the key waits for nothing of its own.
TEST_F(DeadCalls, AreOfOneLetterOnly) {
  call("unknown");
  letter("k0", "", "payments", "outcome_unknown");
  EXPECT_EQ(order({"discard", "2"}).code, 0);
  EXPECT_EQ(changed(), "2|-");
}

// The replay books the answer, or calls again. Cancelled in silence, nothing would.
TEST_F(DeadCalls, ThatAreDecidedKeepTheirReplayUnlessItsIdIsNamed) {
  for (const char* status : {"unknown", "unknown", "failed"}) call(status);
  decide("k0", {"--happened", "{}"});
  decide("k1", {"--did-not-happen"});
  order({"replay", "3", "--no-wait"});
  EXPECT_THAT(order({"replay", "--all", "--cancel"}).text,
              AllOf(HasSubstr("cancelled: 1"), HasSubstr("left alone: 2, as they end calls")));
  EXPECT_THAT(order({"discard", "--all"}).text,
              AllOf(HasSubstr("discarded: 1"), HasSubstr("left alone: 2, as their calls")));
  EXPECT_THAT(order({"discard", "2"}).text, HasSubstr("hapax dead replay 2 --cancel"));
  EXPECT_EQ(changed(), "3|1 2");
  const Said said = order({"replay", "1", "2", "--cancel"});
  EXPECT_THAT(said.text, AllOf(HasSubstr("cancelled: 2"),
                               HasSubstr("the answer is not booked. "
                                         "Decide again: hapax outside"),
                               HasSubstr("To make it: hapax dead replay 2")));
  EXPECT_EQ(changed(), "3|-");
  decide("k0", {"--happened"});
  EXPECT_EQ(changed(), "3|1");
  EXPECT_EQ(order({"discard", "2"}).code, 0);
}

}  // namespace
}  // namespace hapax::support
