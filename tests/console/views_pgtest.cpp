// What the console shows: what the commands print, and hostile bytes as what they are.
#include <set>

#include "console/console_case.hpp"
#include "store/transaction.hpp"

namespace hapax::console {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ConsoleViews : public ConsoleCase {
 protected:
  // The payload of the only letter, as its view has it.
  Json shown_payload(const std::string& sql) {
    letters(1, sql);
    return read("/api/letter?which=1").at("payload");
  }
};

TEST_F(ConsoleViews, OverviewTellsWhatIsHaltedAndWhichDecisionsEndIt) {
  halt("unknown_below_highest", "7");
  halt("store_copied", "NULL", 1);
  letters(3);
  database.run(
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, next_offset, key_spec, scope, "
      "owner) VALUES ('g', 't', 2, 5, 'k', 's', 'w'); "
      "INSERT INTO hapax.attempts (group_id, topic, generation, partition, kafka_offset, count, "
      "last_error, handler, next_try) VALUES ('g', 't', 1, 2, 6, 3, 'bank is away', 'h', now())");
  const Json shown = read("/api/overview");
  EXPECT_EQ(shown.at("group"), "g");
  EXPECT_EQ(shown.at("who"), "ann");
  const Json& state = shown.at("state");
  const Json& halts = state.at("halts");
  ASSERT_EQ(halts.size(), 2U);
  std::vector<std::string> names;
  for (const Json& choice : halts[0].at("choices")) names.push_back(choice.at("name"));
  EXPECT_THAT(names, ElementsAre("run", "skip", "retry"));
  EXPECT_TRUE(halts[0].at("choices")[0].at("destructive"));
  EXPECT_EQ(halts[1].at("choices").size(), 3U);
  EXPECT_TRUE(halts[1].at("choices")[0].at("database"));
  EXPECT_EQ(state.at("partitions")[0].at("state"), "halted: unknown_below_highest");
  EXPECT_EQ(state.at("waiting")[0].at("last_error"), "bank is away");
  EXPECT_EQ(state.at("dead_letters")[0].at("count"), 2);
  EXPECT_EQ(state.at("outbox").at("unsent"), 0);
  EXPECT_EQ(state.at("may").at("role"), "hapax_worker");
}

TEST_F(ConsoleViews, OverviewTellsThatKafkaOrPostgresIsAway) {
  while (read("/api/overview").at("state").at("kafka_age_seconds").is_null()) {
  }
  EXPECT_EQ(read("/api/overview").at("state").at("kafka_error"), "no broker");
  database.run("ALTER ROLE hapax_worker NOLOGIN");
  database.run(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
      "application_name = 'hapax console'");
  const Json shown = read("/api/overview");
  EXPECT_THAT(shown.at("postgres_error").get<std::string>(), HasSubstr("PostgreSQL"));
  EXPECT_TRUE(shown.at("state").is_null());
  const Reply reply = get("/api/letters");
  EXPECT_EQ(reply.status, 503);
  EXPECT_THAT(reply.body, HasSubstr("error"));
  database.run("ALTER ROLE hapax_worker LOGIN");
  EXPECT_FALSE(read("/api/overview").at("state").is_null());
}

TEST_F(ConsoleViews, AsksAgainIfPostgresHasRestarted) {
  EXPECT_FALSE(read("/api/overview").at("state").is_null());
  database.run(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
      "application_name = 'hapax console'");
  EXPECT_TRUE(read("/api/overview").at("postgres_error").is_null());
}

TEST_F(ConsoleViews, TellsWhatItsRoleMayOrder) {
  as_operator();
  const Json may = read("/api/overview").at("state").at("may");
  EXPECT_EQ(may, Json({{"role", "hapax_operator"},
                       {"resume", true},
                       {"dead", true},
                       {"outbox", true},
                       {"outside", true},
                       {"database", false},
                       {"reads_log", true}}));
}

TEST_F(ConsoleViews, TheWorkersRoleMayOrderNothing) {
  const Json worker = read("/api/overview").at("state").at("may");
  for (const char* what : {"resume", "dead", "outbox", "outside", "database", "reads_log"})
    EXPECT_EQ(worker.at(what), false) << what;
}

TEST_F(ConsoleViews, TheOwnerMayAlsoDecideAboutTheDatabase) {
  setup.url = database.owner().url;
  const Json owner = read("/api/overview").at("state").at("may");
  for (const char* what : {"resume", "dead", "outbox", "outside", "database", "reads_log"})
    EXPECT_EQ(owner.at(what), true) << what;
}

TEST_F(ConsoleViews, TenThousandLettersAreReadPageByPage) {
  letters(10'000);
  std::set<int> seen;
  std::string before;
  int pages = 0;
  for (Json next = 0; !next.is_null(); ++pages) {
    const Json page = read("/api/letters?before=" + before);
    ASSERT_LE(page.at("rows").size(), 50U);
    for (const Json& row : page.at("rows")) seen.insert(row.at("id").get<int>());
    next = page.at("next");
    before = next.dump();
  }
  EXPECT_EQ(seen.size(), 10'000U);
  EXPECT_LE(pages, 201);
}

TEST_F(ConsoleViews, LettersAreFoundByTopicReasonErrorKeyAndState) {
  letters(10);
  const auto count = [&](const std::string& query) {
    return read("/api/letters?" + query).at("rows").size();
  };
  EXPECT_EQ(count(""), 10U);
  EXPECT_EQ(count("reason=rejected"), 5U);
  EXPECT_EQ(count("reason=rejected&error=error%204"), 1U);
  EXPECT_EQ(count("topic=other"), 0U);
  EXPECT_EQ(count("key=k3"), 1U);
  EXPECT_EQ(count("state=discarded"), 0U);
  EXPECT_EQ(count("state=all&since=1h"), 10U);
  EXPECT_EQ(get("/api/letters?since=soon").status, 400);
  EXPECT_EQ(get("/api/letters?before=x").status, 400);
  EXPECT_EQ(get("/api/letters?topic=%00").status, 400);
}

TEST_F(ConsoleViews, AScriptInAPayloadIsTextInJson) {
  const Json payload = shown_payload("'<script>alert(1)</script>\n<img src=x onerror=alert(2)>'");
  EXPECT_EQ(payload.at("text"), "<script>alert(1)</script>\n<img src=x onerror=alert(2)>");
  EXPECT_EQ(get("/api/letter?which=1").header("content-type"), "application/json");
  const Reply raw = get("/api/payload?letter=1");
  EXPECT_EQ(raw.header("content-type"), "application/octet-stream");
  EXPECT_THAT(raw.header("content-disposition"), HasSubstr("attachment"));
}

TEST_F(ConsoleViews, TerminalEscapesAreHex) {
  EXPECT_EQ(shown_payload("'\\x1b5b324a'").at("hex"), "1b5b324a");
}

TEST_F(ConsoleViews, ANulIsHex) { EXPECT_EQ(shown_payload("'\\x610062'").at("hex"), "610062"); }

TEST_F(ConsoleViews, WhatIsNotUtf8IsHex) {
  EXPECT_EQ(shown_payload("'\\xc328ff'").at("hex"), "c328ff");
}

TEST_F(ConsoleViews, WhatReordersTextIsHex) {
  EXPECT_EQ(shown_payload("'\\xe280ae61'").at("hex"), "e280ae61");
}

TEST_F(ConsoleViews, ATombstoneIsNull) {
  EXPECT_TRUE(shown_payload("NULL").is_null());
  EXPECT_EQ(get("/api/payload?letter=1").status, 404);
}

TEST_F(ConsoleViews, AMessageThatWasNotKeptIsNoTombstone) {
  letters(3, "NULL");
  database.run(
      "UPDATE hapax.dead_letters SET other = '{\"bytes_kept\": false}' WHERE id = 1; "
      "UPDATE hapax.dead_letters SET error = 'no (the message itself could not be kept: row is too "
      "big)' WHERE id = 2");
  for (const char* id : {"1", "2"}) {
    EXPECT_EQ(read(std::string("/api/letter?which=") + id).at("without_bytes"), true) << id;
    EXPECT_THAT(get(std::string("/api/payload?letter=") + id).body, HasSubstr("is not kept"));
  }
  EXPECT_EQ(read("/api/letter?which=3").at("without_bytes"), false);
  EXPECT_THAT(get("/api/payload?letter=3").body, HasSubstr("a tombstone"));
}

TEST_F(ConsoleViews, OfALargePayloadTheBeginningIsShownAndAllOfItIsAFile) {
  const Json payload = shown_payload("convert_to('a' || repeat('é', 2 * 1024 * 1024), 'UTF8')");
  EXPECT_EQ(payload.at("bytes"), 4 * 1024 * 1024 + 1);
  EXPECT_EQ(payload.at("cut"), true);
  const auto text = payload.at("text").get<std::string>();
  EXPECT_EQ(text.size(), (64U << 10U) - 1);  // without half a character
  const Reply raw = get("/api/payload?letter=1");
  ASSERT_EQ(raw.body.size(), 4U * 1024 * 1024 + 1);
  EXPECT_EQ(raw.body.substr(0, text.size()), text);
  EXPECT_EQ(raw.body.substr(raw.body.size() - 2), "é");
}

TEST_F(ConsoleViews, HostileHeadersAreShownAsTheyAre) {
  letters(1);
  database.run(
      "UPDATE hapax.dead_letters SET message_key = '\\x00', header_names = '{\"\\\\x3c623e\"}', "
      "header_values = '{\"\\\\xff\"}', error = '<b>' || chr(27) || '[2J'");
  const Json letter = read("/api/letter?which=t/0/1");
  EXPECT_EQ(letter.at("message_key").at("hex"), "00");
  EXPECT_EQ(letter.at("headers")[0].at("name").at("text"), "<b>");
  EXPECT_EQ(letter.at("headers")[0].at("value").at("hex"), "ff");
  EXPECT_EQ(letter.at("error"), "<b>\x1b[2J");
}

TEST_F(ConsoleViews, WhatIsNotThereIsASentence) {
  for (const std::string target :
       {"/api/letter?which=9", "/api/explain?key=k", "/api/record?id=1", "/api/nothing"}) {
    const Reply reply = get(target);
    EXPECT_EQ(reply.status, 404) << target;
    EXPECT_FALSE(Json::parse(reply.body).at("error").get<std::string>().empty()) << target;
  }
  for (const std::string target : {"/api/letter", "/api/letter?which=x", "/api/explain",
                                   "/api/explain?which=t/0", "/api/payload"})
    EXPECT_EQ(get(target).status, 400) << target;
}

TEST_F(ConsoleViews, AKeyTellsWhoCompletedIt) {
  database.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at) VALUES ('k1', 's', 'completed', 'g', 't', 1, 0, 7, "
      "now() + interval '1 day')");
  letters(1);
  const Json story = read("/api/explain?key=k1&scope=s");
  EXPECT_EQ(story.at("keys")[0].at("kafka_offset"), 7);
  EXPECT_THAT(story.at("keys")[0].at("story").get<std::string>(), HasSubstr("took effect at"));
  EXPECT_EQ(story.at("dead_letters")[0].at("id"), 1);
}

TEST_F(ConsoleViews, KeysAreReadPageByPageAndByStatusScopeTenantAndAge) {
  database.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, tenant, status, group_id, topic, "
      "generation, "
      "partition, kafka_offset, expires_at, updated_at, result) SELECT 'k' || lpad((n / 3)::text, "
      "2, "
      "'0'), 's', repeat('x', n % 3), CASE n WHEN 7 THEN 'failed' ELSE 'completed' END, 'g', 't', "
      "1, "
      "0, n, now() + interval '1 day', now() - n * interval '1 min', '{\"card\": 1}' FROM "
      "generate_series(0, 119) n");
  std::set<std::string> seen;
  std::string query;
  int pages = 0;
  for (Json page; pages == 0 || !page.at("next").is_null(); ++pages) {
    page = read("/api/keys?" + query);
    ASSERT_LE(page.at("keys").size(), 50U);
    for (const Json& row : page.at("keys")) {
      EXPECT_FALSE(row.contains("result")) << "console.mask hides parts of it";
      seen.insert(row.at("key").get<std::string>() + row.at("tenant").get<std::string>());
    }
    if (const Json& after = page.at("after"); !after.is_null())
      query = "from=" + after[0].get<std::string>() +
              "&behind_scope=s&behind_tenant=" + after[2].get<std::string>();
  }
  EXPECT_EQ(seen.size(), 120U);
  EXPECT_EQ(pages, 3);
  const auto count = [&](const std::string& words) {
    return read("/api/keys?" + words).at("keys").size();
  };
  EXPECT_EQ(count("status=failed"), 1U);
  EXPECT_EQ(count("tenant=xx"), 40U);
  EXPECT_EQ(count("scope=other"), 0U);
  EXPECT_EQ(count("from=k38"), 6U);
  EXPECT_EQ(count("older_than=110m"), 10U);
  EXPECT_EQ(get("/api/keys?older_than=soon").status, 400);
}

TEST_F(ConsoleViews, TheOutboxTellsWhatWaitsAndWhatIsHalted) {
  database.run(
      "INSERT INTO hapax.outbox (group_id, topic, record_key, payload, headers, idempotency_key, "
      "source_topic, source_generation, source_partition, source_offset) VALUES ('g', 'r', 'key', "
      "'\\xff00', '[[\"kind\",{\"hex\":\"ff\"}]]', 'i', 't', 1, 0, 7); "
      "INSERT INTO hapax.outbox_halts (group_id, topic, row_id, record_key, reason, detail, "
      "halted_by) VALUES ('g', 'r', 1, 'key', 'record_refused', 'too large', 'w')");
  const Json state = read("/api/outbox");
  EXPECT_EQ(state.at("topics")[0].at("unsent"), 1);
  EXPECT_EQ(state.at("halts")[0].at("detail"), "too large");
  EXPECT_EQ(read("/api/outbox?topic=r").at("records")[0].at("held"), "record");
  const Json record = read("/api/record?id=1");
  EXPECT_EQ(record.at("payload").at("hex"), "ff00");
  EXPECT_EQ(record.at("headers")[0].at("value").at("hex"), "ff");
  EXPECT_EQ(get("/api/payload?record=1").body, std::string("\xff\0", 2));
}

TEST_F(ConsoleViews, ReplaysTellTheirStateAndTheirMessageNewestFirst) {
  letters(60);
  database.run(
      "INSERT INTO hapax.replays (dead_letter, who, why) SELECT n, 'bob', 'fixed' FROM "
      "generate_series(1, 60) n; "
      "UPDATE hapax.replays SET claimed_by = 'w', claimed_until = now() + interval '1 h', runs = 1 "
      "WHERE id = 60; "
      "UPDATE hapax.replays SET ended_at = now(), outcome = 'failed', detail = 'no account' WHERE "
      "id <= 2; "
      "UPDATE hapax.dead_letters SET group_id = 'other' WHERE id = 59");
  const Json first = read("/api/replays");
  EXPECT_EQ(first.at("rows").size(), 50U);
  EXPECT_EQ(first.at("rows")[0].at("claimed_by"), "w");
  EXPECT_EQ(first.at("rows")[1].at("kafka_offset"), 58);
  EXPECT_EQ(first.at("counts")[0].at("state"), "failed");
  EXPECT_EQ(first.at("counts")[0].at("count"), 2);
  EXPECT_EQ(first.at("counts")[1].at("count"), 57);
  const Json rest = read("/api/replays?before=" + first.at("next").dump());
  EXPECT_EQ(rest.at("rows").size(), 9U);
  EXPECT_TRUE(rest.at("next").is_null());
  const Json failed = read("/api/replays?state=failed").at("rows");
  ASSERT_EQ(failed.size(), 2U);
  EXPECT_EQ(failed[0].at("detail"), "no account");
}

TEST_F(ConsoleViews, TheLogTellsWhoDidWhatAndWhy) {
  as_operator();
  letters(2);
  give("/api/discard", {{"ids", {1}}});
  database.run(
      "INSERT INTO hapax.operator_log (who, action, target, why, facts) SELECT 'bob', 'resume "
      "skip', 't/' || n, 'poison', json_build_array(repeat('x', 5000)) FROM generate_series(1, 60) "
      "n");
  const Json first = read("/api/log");
  EXPECT_EQ(first.at("rows").size(), 50U);
  EXPECT_EQ(first.at("rows")[0].at("target"), "t/60");
  EXPECT_EQ(first.at("rows")[0].at("cut"), true);
  const Json rest = read("/api/log?before=" + first.at("next").dump()).at("rows");
  ASSERT_EQ(rest.size(), 11U);
  EXPECT_EQ(rest.back().at("action"), "dead discard");
  EXPECT_EQ(rest.back().at("who"), "ann");
  EXPECT_THAT(rest.back().at("facts").get<std::string>(), HasSubstr(R"("dead_letters":[1])"));
  EXPECT_EQ(read("/api/log?text=dead").at("rows").size(), 1U);
  EXPECT_EQ(read("/api/log?text=poison").at("rows").size(), 50U);
}

TEST_F(ConsoleViews, TheWorkersRoleIsToldHowToReadTheLog) {
  const Reply reply = get("/api/log");
  EXPECT_EQ(reply.status, 404);
  EXPECT_THAT(reply.body, HasSubstr("hapax_worker may not read"));
  EXPECT_THAT(reply.body, HasSubstr("--url"));
}

TEST_F(ConsoleViews, APartitionTellsItsOwnRetriesAndJumps) {
  database.run(
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, next_offset, key_spec, scope, "
      "owner) VALUES ('g', 't', 0, 5, 'k', 's', 'w'), ('g', 't', 1, 5, 'k', 's', 'w'); "
      "INSERT INTO hapax.attempts (group_id, topic, generation, partition, kafka_offset, count, "
      "last_error, handler, next_try) SELECT 'g', 't', 1, p, 6, 3, 'bank is away ' || p, 'h', "
      "now() "
      "FROM generate_series(0, 1) p; "
      "INSERT INTO hapax.position_changes (group_id, topic, partition, generation, from_offset, "
      "to_offset, cause, who, why) VALUES ('g', 't', 0, 1, 9, 5, 'rewind', 'bob', 'again'), ('g', "
      "'t', 1, 1, 9, 6, 'skip', 'bob', 'poison')");
  const Json shown = read("/api/partition?topic=t&partition=1");
  ASSERT_EQ(shown.at("waiting").size(), 1U);
  EXPECT_EQ(shown.at("waiting")[0].at("last_error"), "bank is away 1");
  ASSERT_EQ(shown.at("changes").size(), 1U);
  EXPECT_EQ(shown.at("changes")[0].at("cause"), "skip");
  EXPECT_EQ(read("/api/overview").at("state").at("waiting").size(), 2U);
  for (const char* query : {"topic=t", "partition=1", "topic=t&partition=-1", "topic=t&partition=x",
                            "topic=t&partition=2147483648"})
    EXPECT_EQ(get(std::string("/api/partition?") + query).status, 400) << query;
}

TEST_F(ConsoleViews, AnAuditWithoutKafkaIsASentence) {
  for (const char* query : {"partition=0", "topic=t", "topic=t&partition=0&from=-1",
                            "topic=t&partition=0&from=9223372036854775807"})
    EXPECT_EQ(get(std::string("/api/audit?") + query).status, 400) << query;
  EXPECT_EQ(get("/api/audit?topic=other&partition=0").status, 404);
  const Reply reply = get("/api/audit?topic=t&partition=0");
  EXPECT_EQ(reply.status, 503);
  EXPECT_THAT(reply.body, HasSubstr("127.0.0.1:1"));
}

TEST_F(ConsoleViews, OutsideCallsAreThoseOfRoutesThatCall) {
  EXPECT_EQ(read("/api/outside"), Json({{"scopes", Json::array()}, {"calls", Json::array()}}));
}

// Another session's lock on a table must not keep the console's sessions and threads.
TEST_F(ConsoleViews, ALookGivesUpAtALockInsteadOfWaitingForIt) {
  setup.config.postgres.lock_timeout = setup.config.postgres.statement_timeout =
      std::chrono::hours(1);
  letters(1);
  store::Session other(database.owner());
  store::Transaction lock(other);
  lock.run("LOCK TABLE hapax.dead_letters IN ACCESS EXCLUSIVE MODE");
  const Reply reply = get("/api/letters");
  EXPECT_EQ(reply.status, 500);
  EXPECT_THAT(reply.body, HasSubstr("lock timeout"));
  lock.rollback();
  EXPECT_EQ(read("/api/letters").at("rows").size(), 1U);
}

}  // namespace
}  // namespace hapax::console
