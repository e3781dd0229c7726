// An operator's commands with the configuration of a gate.
#include <gmock/gmock.h>

#include <fstream>

#include "gate/accept_case.hpp"
#include "sandbox/temporary_folder.hpp"
#include "support/command.hpp"

namespace hapax::gate {
namespace {

using nlohmann::json;
using support::Said;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class GateOrders : public AcceptCase {
 protected:
  GateOrders() {
    json file = {{"gate", {{"callers", {{"tokens", "ann " + std::string(64, 'a')}}}}},
                 {"postgres", {{"url", database.owner().url}}},
                 {"routes", {{{"path", "/direct"}, {"handler", "booker"}}}}};
    std::ofstream(direct_) << file;
    file["gate"]["operations"]["key"] = std::string(128, 'a');
    file["kafka"] = {{"bootstrap.servers", "127.0.0.1:1"}, {"group.id", "bookers"}};
    file["routes"] = {
        {{"path", "/payments"}, {"accept", {{"topic", "requests"}, {"scope", "booking"}}}}};
    std::ofstream(accepting_) << file;
    std::ofstream(worker_) << json{{"kafka", file["kafka"]},
                                   {"postgres", file["postgres"]},
                                   {"routes",
                                    {{{"topic", "requests"},
                                      {"handler", "booker"},
                                      {"key", {{"header", "idempotency-key"}}}}}}};
    for (const auto& path : {direct_, accepting_, worker_})  // else there are warnings of secrets
      std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  }

  Said explain(const std::string& key) { return hapax({"explain", "--key", key}); }
  Said hapax(const std::vector<std::string>& arguments) {
    return support::hapax(arguments, accepting_);
  }

  sandbox::TemporaryFolder folder_{"orders"};
  std::filesystem::path direct_ = folder_.path() / "direct.json";
  std::filesystem::path accepting_ = folder_.path() / "accepting.json";
  std::filesystem::path worker_ = folder_.path() / "worker.json";
};

TEST_F(GateOrders, ExplainTellsWhatBecameOfAnAcceptedRequest) {
  ASSERT_EQ(post("k1").status, 202);
  EXPECT_THAT(explain("k1").text,
              AllOf(HasSubstr("key k1 in scope gate, tenant ann: completed\n"
                              "a request to /payments (gate gate) was accepted at "),
                    HasSubstr("its record   idempotency-key " + record_key("k1")),
                    HasSubstr("no worker has settled it")));
  work([](const Message& /*message*/, Context& context) { context.respond(201, {}, "booked"); });
  EXPECT_THAT(explain("k1").text, AllOf(HasSubstr("key " + record_key("k1") +
                                                  " in scope booking: completed\n"
                                                  "requests/0/0 (group bookers, "),
                                        Not(HasSubstr("no worker has settled it"))));
  ASSERT_EQ(post("k2").status, 202);
  work([](const Message& /*message*/, Context& /*context*/) { throw Reject("too dear"); });
  const json story = json::parse(hapax({"explain", "--key", "k2", "--json"}).text);
  const json& record = story.at("keys").at(0).at("record");
  EXPECT_EQ(record.at("idempotency_key"), record_key("k2"));
  EXPECT_EQ(record.at("keys").at(0).at("status"), "failed");
  EXPECT_EQ(record.at("dead_letters").at(0).at("reason"), "rejected");
}

TEST_F(GateOrders, AWorkersConfigurationTellsTheSameOfAnAcceptedRequest) {
  ASSERT_EQ(post("k1").status, 202);
  const Said said = support::hapax({"explain", "--key", "k1"}, worker_);
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_EQ(said.text, explain("k1").text);
}

TEST_F(GateOrders, ExplainDoesNotTellThatARefusedRequestWasAccepted) {
  config.gate.routes.front().accept->key_pointer = "/account";
  ASSERT_EQ(post("k1").status, 422);
  const Said said = explain("k1");
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text, AllOf(HasSubstr("a request to /payments (gate gate) was answered 422 at "),
                               Not(HasSubstr("its record"))));
}

TEST_F(GateOrders, ExplainDoesNotTellThatARejectedRequestTookEffect) {
  config.base.routes.at(0).handler = "booker";
  config.gate.routes.at(0).accept.reset();
  body = [](const Message& /*message*/, Context& /*context*/) { throw Reject("too dear"); };
  ASSERT_EQ(post("k1").status, 422);
  const auto told = [this](const std::vector<std::string>& arguments) {
    return support::hapax(arguments, direct_).text;
  };
  EXPECT_THAT(told({"explain", "--key", "k1"}),
              AllOf(HasSubstr("a request to /payments (gate gate) was answered 422 at "),
                    HasSubstr("if its handler rejected it, nothing took effect")));
  EXPECT_THAT(told({"keys", "forget", "k1", "--why", "asked"}),
              HasSubstr("it was answered 422; the next request with this key runs"));
}

TEST_F(GateOrders, ExplainTellsOfARequestThatAHandlerAnswered) {
  config.base.routes.at(0).handler = "booker";
  config.gate.routes.at(0).accept.reset();
  ASSERT_EQ(post("k1").status, 201);
  const Said said = support::hapax({"explain", "--key", "k1"}, direct_);
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text, AllOf(HasSubstr("a request to /payments (gate gate) took effect at "),
                               Not(HasSubstr("its record"))));
  EXPECT_THAT(support::hapax({"explain", "--key", "k9"}, direct_).text,
              HasSubstr("more than 7d ago (route /direct)"));
}

TEST_F(GateOrders, AForgottenKeyIsTakenAgain) {
  ASSERT_EQ(post("k1").status, 202);
  EXPECT_EQ(post("k1").header("idempotent-replayed"), "true");
  EXPECT_THAT(hapax({"keys", "list", "--scope", "gate"}).text, HasSubstr("k1"));
  const Said said = hapax({"keys", "forget", "k1", "--scope", "gate", "--why", "asked", "--yes"});
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text, Not(HasSubstr("offsets rewind")));
  EXPECT_EQ(post("k1").header("idempotent-replayed"), "");
  EXPECT_EQ(post("k1").status, 202);
}

TEST_F(GateOrders, ForgettingACompletedKeyTellsWhetherSomethingWasBooked) {
  const auto told = [this](const char* error) {
    database.run("UPDATE hapax.idempotency_keys SET error = " + std::string(error));
    return hapax({"keys", "forget", "k1", "--why", "asked"}).text;
  };
  ASSERT_EQ(post("k1").status, 202);
  EXPECT_THAT(told("NULL"), HasSubstr("it was accepted; the next request with this key is accepted "
                                      "again. If it is the same one and a worker has completed it, "
                                      "nothing runs again"));
  database.run("UPDATE hapax.idempotency_keys SET result = NULL");
  const char* const effect = "took effect; the next message with this key does it again";
  EXPECT_THAT(told("NULL"), HasSubstr(effect));
  EXPECT_THAT(told("'card refused'"),
              AllOf(HasSubstr("the other side refused its call, so nothing was booked; the next "
                              "message with this key calls again"),
                    Not(HasSubstr(effect))));
  EXPECT_THAT(told("'given up by ann: by hand'"),
              AllOf(HasSubstr("nothing was booked, though the call may have happened; the next "
                              "message with this key calls again"),
                    Not(HasSubstr(effect))));
}

TEST_F(GateOrders, ALostConnectionLeavesAnOrderInDoubt) {
  ASSERT_EQ(post("k1").status, 202);
  database.run(
      "CREATE FUNCTION hang_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;"
      "CREATE TRIGGER hang_up BEFORE INSERT ON hapax.operator_log FOR EACH ROW "
      "EXECUTE FUNCTION hang_up()");
  const Said said = hapax({"keys", "forget", "k1", "--why", "asked", "--yes"});
  EXPECT_EQ(said.code, 4) << said.text;
  EXPECT_THAT(said.text, HasSubstr("It is not known whether the order was carried out."));
}

TEST_F(GateOrders, TheOutboxAndTheSchemaAreSeen) {
  ASSERT_EQ(post("k1").status, 202);
  EXPECT_THAT(hapax({"outbox", "list"}).text,
              AllOf(HasSubstr("(group bookers)"), HasSubstr("requests")));
  EXPECT_EQ(hapax({"migrate", "status"}).code, 0);
  const Said none = support::hapax({"outbox", "list"}, direct_);
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.text, HasSubstr("neither publishes nor accepts"));
}

TEST_F(GateOrders, ACopyOfADatabaseIsDecidedAboutWithoutAWorker) {
  const auto decide = [this](const char* decision) {
    return hapax({"resume", "--decision", decision, "--why", "moved", "--yes"});
  };
  EXPECT_THAT(decide("retry").text, HasSubstr("name what is halted"));
  const Said original = decide("copy");
  EXPECT_EQ(original.code, 1);
  EXPECT_THAT(original.text, HasSubstr("this database is the original"));
  database.run(
      "UPDATE hapax.store SET database_oid = 1;"
      "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, reason, "
      "detail, halted_by) "
      "VALUES ('other', 't', 0, false, 1, 'store_copied', '', 'w')");
  const Said said = decide("moved");
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text, AllOf(HasSubstr("t/0  store_copied"),
                               HasSubstr("resumed: this database is the original")));
  EXPECT_EQ(database.value("SELECT action, target FROM hapax.operator_log"),
            "resume moved|database");
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.halts WHERE ended_at IS NULL"), 0);
  EXPECT_THAT(decide("moved").text, HasSubstr("this database is the original"));
}

TEST_F(GateOrders, ACommandThatNeedsAWorkersConfigurationNamesIt) {
  for (const char* const command : {"status", "run"}) {
    const Said said = hapax({command});
    EXPECT_EQ(said.code, 3) << said.text;
    EXPECT_THAT(said.text, HasSubstr("is the configuration of a gate; this command needs that of "
                                     "a worker, such as -c worker.json"));
  }
}

}  // namespace
}  // namespace hapax::gate
