// What the console changes: what the commands change, with who and why, and nothing without the
// right to it.
#include "console/console_case.hpp"
#include "store/transaction.hpp"

namespace hapax::console {
namespace {

using testing::HasSubstr;

class ConsoleOrders : public ConsoleCase {
 protected:
  std::string states() {
    return database.value(
        "SELECT string_agg(coalesce(ended_as, 'open'), ' ' ORDER BY id) FROM hapax.dead_letters");
  }
  std::string replays() {
    return database.value(
        "SELECT coalesce(string_agg(dead_letter || ' ' || who || ' ' || coalesce(outcome, 'open'), "
        "', ' ORDER BY id), '') FROM hapax.replays");
  }
  void checkpoint() {
    database.run(
        "INSERT INTO hapax.checkpoints (group_id, topic, partition, next_offset, key_spec, scope) "
        "VALUES ('g', 't', 0, 7, 'k', 's')");
  }
  void outbox() {
    database.run(
        "INSERT INTO hapax.outbox (group_id, topic, record_key, payload, headers, idempotency_key, "
        "source_topic, source_generation, source_partition, source_offset) VALUES ('g', 'r', "
        "'key', "
        "'p', '[]', 'i', 't', 1, 0, 7); "
        "INSERT INTO hapax.outbox_halts (group_id, topic, row_id, record_key, reason, detail, "
        "halted_by) VALUES ('g', 'r', 1, 'key', 'record_refused', 'too large', 'w')");
  }
  // As the relay does at a loss that it finds later.
  void amend_halt() { database.run("UPDATE hapax.outbox_halts SET reason = 'marker_lost'"); }
  static std::string error_of(const Json& reply) { return reply.at("error").get<std::string>(); }
  // Key k1 of letter 1 was called for, and what became of it is unknown.
  void unknown_call() {
    setup.config.routes[0].outside.emplace();
    letters(1);
    database.run(
        "UPDATE hapax.dead_letters SET reason = 'outcome_unknown'; "
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
        "partition, kafka_offset, expires_at, token, calls, called_at, alone, crashes) VALUES "
        "('k1', 's', 'unknown', 'g', 't', 1, 0, 1, 'infinity', 100, 1, now(), false, 0)");
  }
};

TEST_F(ConsoleOrders, AHaltEndsOnlyAsItWasShown) {
  as_operator();
  checkpoint();
  halt("unexpected_error", "7");
  const Json order = {{"place", "t/0"}, {"decision", "retry"}};
  Json dry = order;
  dry["dry_run"] = true;
  const Json told = give("/api/resume", dry);
  EXPECT_EQ(told.at("halts"), Json({1}));
  EXPECT_THAT(told.at("lines")[0].get<std::string>(), HasSubstr("unexpected_error"));
  EXPECT_EQ(log(), "");

  give("/api/resume", order, 400);  // it names no halt that was seen
  Json act = order;
  act["seen"] = {2};
  EXPECT_THAT(give("/api/resume", act, 409).at("error").get<std::string>(),
              HasSubstr("halted meanwhile"));
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.halts WHERE ended_at IS NULL"), "1");
  act["seen"] = {1};
  EXPECT_EQ(give("/api/resume", act).at("dry_run"), false);
  EXPECT_EQ(database.value("SELECT ended_by, why, decision FROM hapax.halts"), "ann|fixed|retry");
  EXPECT_EQ(log(), "ann|resume retry|fixed");
  EXPECT_THAT(give("/api/resume", act, 409).at("error").get<std::string>(), HasSubstr("meanwhile"));
}

// It may have become that since the page was shown.
TEST_F(ConsoleOrders, TheDryRunTellsThatAPartOfAnEffectMayStand) {
  as_operator();
  checkpoint();
  halt("handler_ended_transaction", "7");
  const Json dry = {{"place", "t/0"}, {"decision", "retry"}, {"dry_run", true}};
  EXPECT_THAT(give("/api/resume", dry).at("effect").get<std::string>(),
              HasSubstr("a part of its effect may stand"));
  const Json shown = read("/api/overview").at("state").at("halts")[0].at("choices")[0];
  EXPECT_EQ(shown.at("name"), "retry");
  EXPECT_TRUE(shown.at("destructive"));
  EXPECT_THAT(shown.at("effect").get<std::string>(), HasSubstr("a part of its effect may stand"));
  database.run("UPDATE hapax.halts SET reason = 'statement_refused'");
  EXPECT_THAT(give("/api/resume", dry).at("effect").get<std::string>(),
              HasSubstr("the cause is fixed"));
}

TEST_F(ConsoleOrders, ADecisionThatDoesNotFitIsRefusedWithTheOnesThatDo) {
  as_operator();
  halt("unexpected_error");
  const auto refused = [&](const char* decision, int status) {
    return give("/api/resume", {{"place", "t/0"}, {"decision", decision}, {"dry_run", true}},
                status)
        .at("error")
        .get<std::string>();
  };
  EXPECT_THAT(refused("recreated", 409), HasSubstr("what does: retry"));
  EXPECT_THAT(refused("skip", 409), HasSubstr("names no message"));
  EXPECT_THAT(refused("guess", 400), HasSubstr("no decision"));
  give("/api/resume", {{"place", "t/9"}, {"decision", "retry"}, {"dry_run", true}}, 409);
}

TEST_F(ConsoleOrders, AnOrderNamesWhoAndWhy) {
  as_operator();
  letters(1);
  for (const Json& order : {Json{{"ids", {1}}, {"who", "ann"}}, Json{{"ids", {1}}, {"why", "w"}},
                            Json{{"ids", {1}}, {"who", "ann"}, {"why", ""}},
                            Json{{"ids", {1}}, {"who", "a\0b"}, {"why", 1}},
                            Json{{"ids", {1}}, {"who", "ann\n bob"}, {"why", "w"}},
                            Json{{"ids", {1}}, {"who", "ann"}, {"why", "w\x1b[2J"}},
                            Json{{"ids", {1}}, {"who", "ann\u202e"}, {"why", "w"}},
                            Json{{"ids", Json::array()}, {"who", "ann"}, {"why", "w"}}})
    EXPECT_EQ(post("/api/discard", order).status, 400) << order;
  EXPECT_EQ(states(), "open");
}

TEST_F(ConsoleOrders, AnOrderThatNestsDeepIsRefused) {
  as_operator();
  outbox();
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const Reply reply = ask(
      "POST", "/api/outbox/retry",
      own({{"Sec-Fetch-Site", "same-origin"}, {"Content-Type", "application/json"}}),
      R"({"who": "ann", "why": "w", "which": "r", "seen": [{"reason": "x", "id": )" + deep + "}]}");
  EXPECT_EQ(reply.status, 400) << reply.body;
  EXPECT_EQ(get("/api/overview").status, 200);
}

TEST_F(ConsoleOrders, AnOrderIsAboutTheIdsThatMatchedAndNoOthers) {
  as_operator();
  letters(1200);
  const Json ids = read("/api/matching?reason=rejected").at("ids");
  ASSERT_EQ(ids.size(), 600U);
  database.run(
      "UPDATE hapax.dead_letters SET kafka_offset = kafka_offset + 10000; "
      "UPDATE hapax.dead_letters SET reason = 'rejected'");
  const Json told = give("/api/discard", {{"ids", ids}});
  EXPECT_EQ(told.at("discarded"), 600);
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.dead_letters WHERE ended_as = 'discarded' "
                           "AND id % 2 = 0 AND ended_by = 'ann' AND ended_why = 'fixed'"),
            "600");
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.dead_letters WHERE ended_at IS NULL"),
            "600");
  EXPECT_EQ(read("/api/matching").at("ids").size(), 600U);
}

TEST_F(ConsoleOrders, AllThatMatchAKeyAreOfOneTenant) {
  letters(2);
  database.run("UPDATE hapax.dead_letters SET key = 'k', tenant = 'anna'");
  EXPECT_EQ(read("/api/matching?key=k").at("ids").size(), 2U);
  database.run("UPDATE hapax.dead_letters SET tenant = 'bert' WHERE id = 2");
  const Reply reply = get("/api/matching?key=k");
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("name scope and tenant"));
  EXPECT_EQ(read("/api/matching?key=k&tenant=bert").at("ids"), Json({2}));
  EXPECT_EQ(read("/api/letters?tenant=anna").at("rows").size(), 1U);
  EXPECT_EQ(read("/api/letters?scope=other").at("rows").size(), 0U);
}

// The list shows letters of the key as it is stored, and only without any the key of that name.
TEST_F(ConsoleOrders, AllThatMatchAreThoseThatTheListShows) {
  letters(4);
  database.run(
      "UPDATE hapax.dead_letters SET key = ':17' WHERE id = 1; "
      "UPDATE hapax.dead_letters SET key = ':\":17\"' WHERE id = 2; "
      "UPDATE hapax.dead_letters SET handler = 'other', key = ':\":18\"' WHERE id = 3");
  const auto expect_same = [&](const std::string& query, const Json& ids) {
    Json listed = Json::array();
    const Json page = read("/api/letters?" + query);
    for (const Json& row : page.at("rows")) listed.insert(listed.begin(), row.at("id"));
    EXPECT_EQ(listed, ids) << query;
    EXPECT_EQ(read("/api/matching?" + query).at("ids"), ids) << query;
  };
  expect_same("key=:17", {1});
  expect_same("key=:18", {3});
  expect_same("handler=other", {3});
  expect_same("until=1h", Json::array());
  expect_same("reason=rejected", {2, 4});
}

TEST_F(ConsoleOrders, AllThatMatchAreWithoutThoseThatAnOperatorSkipped) {
  letters(2);
  database.run("UPDATE hapax.dead_letters SET reason = 'skipped_by_operator' WHERE id = 1");
  EXPECT_EQ(read("/api/matching?topic=t"), (Json{{"ids", {2}}, {"skipped", 1}}));
  EXPECT_EQ(read("/api/matching?reason=skipped_by_operator"), (Json{{"ids", {1}}, {"skipped", 0}}));
}

TEST_F(ConsoleOrders, LettersOfAnotherGroupAreLeftAlone) {
  as_operator();
  letters(2);
  database.run("UPDATE hapax.dead_letters SET group_id = 'other' WHERE id = 1");
  EXPECT_EQ(give("/api/discard", {{"ids", {1, 2}}}).at("discarded"), 1);
  EXPECT_EQ(states(), "open discarded");
}

// A role with all rights must not be sent to look for rights.
TEST_F(ConsoleOrders, ALockedLetterIsToldAsOneThatAnotherTransactionHolds) {
  as_operator();
  setup.config.postgres.lock_timeout = std::chrono::milliseconds(50);
  letters(1);
  store::Session other(database.owner());
  store::Transaction lock(other);
  lock.run("SELECT FROM hapax.dead_letters FOR UPDATE");
  for (const char* name : {"/api/discard", "/api/replay", "/api/cancel"})
    EXPECT_THAT(error_of(give(name, {{"ids", {1}}}, 409)),
                testing::AllOf(HasSubstr("Another transaction holds it: try again. Letters above"),
                               testing::Not(HasSubstr("--url"))));
}

TEST_F(ConsoleOrders, AReplayIsWantedOnceAndMayBeCancelled) {
  as_operator();
  letters(2);
  EXPECT_EQ(give("/api/replay", {{"ids", {1, 2}}}).at("wanted"), 2);
  EXPECT_EQ(give("/api/replay", {{"ids", {1}}}).at("wanted_before"), 1);
  EXPECT_EQ(replays(), "1 ann open, 2 ann open");
  EXPECT_TRUE(read("/api/letters").at("rows")[0].at("replay_wanted"));
  EXPECT_EQ(give("/api/cancel", {{"ids", {1}}}).at("cancelled"), 1);
  EXPECT_EQ(replays(), "1 ann cancelled, 2 ann open");
  EXPECT_EQ(read("/api/letter?which=1").at("replays")[0].at("outcome"), "cancelled");
}

TEST_F(ConsoleOrders, AnEditedPayloadRunsInPlaceOfTheLettersOwn) {
  as_operator();
  letters(2);
  give("/api/replay", {{"ids", {1, 2}}, {"payload", "{}"}}, 400);
  give("/api/replay", {{"ids", {1}}, {"payload", "{\"amount\": \"é\"}"}});
  EXPECT_EQ(database.value("SELECT edited, convert_from(payload, 'UTF8') FROM hapax.replays"),
            "t|{\"amount\": \"é\"}");
  EXPECT_THAT(
      give("/api/replay", {{"ids", {1}}, {"payload", "x"}}, 409).at("error").get<std::string>(),
      HasSubstr("wanted already by ann"));
}

TEST_F(ConsoleOrders, AHaltedRecordIsNeverSentIfSo) {
  as_operator();
  outbox();
  const Json shown = give("/api/outbox/skip", {{"ids", {1}}, {"dry_run", true}});
  EXPECT_EQ(shown.at("records"), 1);
  EXPECT_EQ(log(), "");
  amend_halt();
  EXPECT_THAT(error_of(give("/api/outbox/skip", {{"ids", {1}}, {"seen", shown.at("halts")}}, 409)),
              HasSubstr("changed since it was shown"));
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.outbox"), "1");
  const Json again = give("/api/outbox/skip", {{"ids", {1}}, {"dry_run", true}}).at("halts");
  EXPECT_EQ(give("/api/outbox/skip", {{"ids", {1}}, {"seen", again}}).at("records"), 1);
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.outbox"), "0");
  EXPECT_THAT(error_of(give("/api/outbox/retry", {{"which", "1"}, {"seen", again}}, 409)),
              HasSubstr("1 is not halted"));
  EXPECT_EQ(log(), "ann|outbox skip|fixed");
}

// A: an operator sees that Kafka refused a record, and has the topic fixed. The relay finds
// meanwhile that its marker is lost, so the record may be there twice after a retry.
TEST_F(ConsoleOrders, AHaltedTopicIsRetriedOnlyAsItWasShown) {
  as_operator();
  outbox();
  const auto halts = [&] {
    return give("/api/outbox/retry", {{"which", "r"}, {"dry_run", true}}).at("halts");
  };
  const auto retry = [&](const Json& seen, int status) {
    return give("/api/outbox/retry", {{"which", "r"}, {"seen", seen}}, status);
  };
  const Json shown = halts();
  EXPECT_EQ(shown, Json::parse(R"([{"id": 1, "topic": "r", "record": 1, "reason": "record_refused",
                                    "detail": "too large"}])"));
  for (const Json& wrong : {Json(), Json(1), Json({1}), Json({{{"id", "1"}, {"reason", "x"}}}),
                            Json({{{"id", 1}}}), Json({{{"reason", "record_refused"}}})})
    retry(wrong, 400);
  give("/api/outbox/retry", {{"which", "r"}}, 400);
  EXPECT_THAT(error_of(retry(Json::array(), 409)), HasSubstr("changed since it was shown"));
  amend_halt();
  EXPECT_THAT(error_of(retry(shown, 409)), HasSubstr("changed since it was shown"));
  const Json amended = halts();
  database.run(
      "INSERT INTO hapax.outbox_halts (group_id, topic, row_id, record_key, reason, detail, "
      "halted_by) VALUES ('g', 'r', 2, 'other', 'record_refused', 'too large', 'w')");
  EXPECT_THAT(error_of(retry(amended, 409)), HasSubstr("changed since it was shown"));
  EXPECT_EQ(log(), "");
  EXPECT_EQ(retry(halts(), 200).at("halts").size(), 2U);
  EXPECT_EQ(database.value("SELECT DISTINCT ended_by, decision FROM hapax.outbox_halts"),
            "ann|retry");
}

TEST_F(ConsoleOrders, AnUnknownCallIsDecidedAsItWasShown) {
  as_operator();
  unknown_call();
  const Json calls = read("/api/outside").at("calls");
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].at("token"), 100);
  Json order = {{"key", "k1"}, {"scope", "s"}, {"tenant", ""}, {"decision", "happened"}};
  order["token"] = 99;
  EXPECT_THAT(give("/api/decide", order, 409).at("error").get<std::string>(),
              HasSubstr("token is 100, not 99"));
  order["token"] = 100;
  EXPECT_THAT(give("/api/decide", order, 409).at("error").get<std::string>(),
              HasSubstr("no answer is kept"));
  for (const char* wrong : {"{not JSON", "", " "}) {
    order["answer"] = wrong;
    give("/api/decide", order, 400);
  }
  order["answer"] = "{\"charge\": \"ch_1\"}";
  order["dry_run"] = true;
  EXPECT_THAT(give("/api/decide", order).at("effect").get<std::string>(),
              HasSubstr("books the answer"));
  EXPECT_EQ(give("/api/decide", order).at("answer"), "{\"charge\": \"ch_1\"}");
  EXPECT_EQ(log(), "");
  order["dry_run"] = false;
  give("/api/decide", order);
  EXPECT_EQ(database.value("SELECT status, answer FROM hapax.idempotency_keys"),
            "answered|{\"charge\": \"ch_1\"}");
  EXPECT_EQ(log(), "ann|outside decide --happened|fixed");
}

TEST_F(ConsoleOrders, ACallThatIsNotThereIsToldWithTheTenantsThatHaveIt) {
  as_operator();
  unknown_call();
  database.run("UPDATE hapax.idempotency_keys SET tenant = 'anna'");
  Json order = {{"key", "k1"}, {"scope", "s"}, {"decision", "give_up"}, {"token", 100}};
  for (const char* tenant : {"", "bert"}) {
    order["tenant"] = tenant;
    EXPECT_THAT(error_of(give("/api/decide", order, 409)),
                HasSubstr("it is stored in scope \"s\" tenant \"anna\""));
  }
  order["key"] = "k2";
  EXPECT_THAT(error_of(give("/api/decide", order, 409)), HasSubstr("no key \"k2\" is stored"));
}

// A: an operator empties the field, as the kept answer is wrong. It must not be booked.
TEST_F(ConsoleOrders, AKeptAnswerIsBookedOnlyIfItIsShown) {
  as_operator();
  unknown_call();
  database.run("UPDATE hapax.idempotency_keys SET answer = '{\"charge\": \"kept\"}'");
  Json order = {{"key", "k1"}, {"scope", "s"}, {"decision", "happened"}, {"token", 100}};
  order["answer"] = "";
  give("/api/decide", order, 400);
  EXPECT_EQ(database.value("SELECT status FROM hapax.idempotency_keys"), "unknown");
  order.erase("answer");
  order["dry_run"] = true;
  EXPECT_EQ(give("/api/decide", order).at("answer"), "{\"charge\": \"kept\"}");
  order["decision"] = "give_up";
  const Json gives_up = give("/api/decide", order);
  EXPECT_TRUE(gives_up.at("answer").is_null());
  EXPECT_THAT(gives_up.at("effect").get<std::string>(), HasSubstr("{\"charge\": \"kept\"}"));
  order["decision"] = "did_not_happen";
  EXPECT_THAT(give("/api/decide", order, 409).at("error").get<std::string>(),
              HasSubstr("has answered"));
}

TEST_F(ConsoleOrders, ALetterIsNotDiscardedBeforeItsCallIsDecided) {
  as_operator();
  unknown_call();
  const Json told = give("/api/discard", {{"ids", {1}}});
  EXPECT_EQ(told.at("discarded"), 0);
  EXPECT_THAT(told.at("lines")[0].get<std::string>(),
              HasSubstr("First decide: hapax outside decide 'k1'"));
  give("/api/decide", {{"key", "k1"}, {"decision", "did_not_happen"}, {"token", 100}});
  EXPECT_THAT(give("/api/cancel", {{"ids", {1}}}).at("lines")[0].get<std::string>(),
              HasSubstr("the call is not made again"));
  EXPECT_EQ(states(), "open");
  EXPECT_EQ(replays(), "1 ann cancelled");
}

TEST_F(ConsoleOrders, TheWorkersRoleChangesNothing) {
  checkpoint();
  halt("unexpected_error", "7");
  outbox();
  unknown_call();
  database.run("UPDATE hapax.idempotency_keys SET kafka_offset = 2");  // not of the letter
  const std::pair<std::string, Json> orders[] = {
      {"resume", {{"place", "t/0"}, {"decision", "retry"}, {"seen", {1}}}},
      {"replay", {{"ids", {1}}}},
      {"discard", {{"ids", {1}}}},
      {"outbox/retry",
       {{"which", "r"}, {"seen", Json::parse(R"([{"id": 1, "reason": "record_refused"}])")}}},
      {"outbox/skip", {{"ids", {1}}, {"seen", Json::array()}}},
      {"decide", {{"key", "k1"}, {"decision", "give_up"}, {"token", 100}}}};
  for (const auto& [name, order] : orders)
    EXPECT_THAT(give("/api/" + name, order, 409).at("error").get<std::string>(), HasSubstr("--url"))
        << name;
  EXPECT_EQ(log() + replays(), "");
  EXPECT_EQ(states(), "open");
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.halts WHERE ended_at IS NULL"), "1");
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.outbox_halts WHERE ended_at IS NULL"), "1");
  EXPECT_EQ(database.value("SELECT status FROM hapax.idempotency_keys"), "unknown");
}

}  // namespace
}  // namespace hapax::console
