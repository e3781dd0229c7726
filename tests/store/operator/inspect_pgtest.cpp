// What the operator's commands read, asked as the worker's role.
#include "store/operator/inspect.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "support/database.hpp"

namespace hapax::store {
namespace {

class Inspect : public testing::Test {
 protected:
  void key(const std::string& name, const std::string& status = "completed",
           const std::string& scope = "s") {
    database.run(
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic,"
        " generation, partition, kafka_offset, result, updated_at, expires_at) VALUES ('" +
        name + "', '" + scope + "', '" + status +
        "', 'g', 't', 1, 0, 5, '{\"a\":1}', now() - interval '2h', now())");
  }

  void letter(const std::string& offset, const std::string& generation = "1",
              const std::string& group = "g", const std::string& reason = "rejected") {
    database.run(
        "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset,"
        " timestamp_type, message_key, payload, header_names, header_values, reason, error,"
        " attempts, handler, handler_version, scope, key, first_at) VALUES ('" +
        group + "', 't', " + generation + ", 0, " + offset +
        ", 'none', '', '\\xff00', '{\"\\\\x62\",\"\\\\x61\",\"\\\\x62\"}', "
        "'{NULL,\"\\\\x\",\"\\\\x31\"}',"
        " '" +
        reason + "', 'no', 1, 'h', '1', 's', 'k1', now())");
  }

  void attempt(const std::string& offset) {
    database.run(
        "INSERT INTO hapax.attempts (group_id, topic, generation, partition, kafka_offset,"
        " count, last_error, handler, next_try) VALUES ('g', 't', 1, 0, " +
        offset + ", 2, 'no', 'h', now() + interval '10s')");
  }

  test::Database database;
  Session session{database.worker()};
};

TEST_F(Inspect, WorkersRoleHasAllItsRights) {
  EXPECT_EQ(read_missing_rights(session), Json::array());
}

TEST_F(Inspect, SeesAMissingRight) {
  database.run("REVOKE UPDATE ON hapax.checkpoints FROM hapax_worker");
  EXPECT_EQ(read_missing_rights(session),
            Json({{{"table", "checkpoints"}, {"privilege", "UPDATE"}}}));
}

TEST_F(Inspect, SeesEachRightThatRolesGive) {
  std::istringstream rights(
      database.value("SELECT privilege_type, table_name FROM information_schema.table_privileges"
                     " WHERE grantee = 'hapax_worker' AND table_schema = 'hapax'"));
  int seen = 0;
  for (std::string right, table; std::getline(rights, right, '|') && std::getline(rights, table);) {
    ++seen;
    const std::string what = right + " ON hapax." + table;
    database.run("REVOKE " + what + " FROM hapax_worker");
    EXPECT_EQ(read_missing_rights(session), Json({{{"table", table}, {"privilege", right}}}))
        << what;
    database.run("GRANT " + what + " TO hapax_worker");
  }
  EXPECT_GT(seen, 30);
}

// Of a table some of whose columns a worker may write: each of them, and all at once.
TEST_F(Inspect, SeesEachRightOnAColumnThatRolesGive) {
  std::istringstream rights(database.value(
      "SELECT privilege_type, relname, attname FROM pg_attribute JOIN pg_class c ON c.oid = "
      "attrelid, aclexplode(attacl) WHERE grantee = 'hapax_worker'::regrole"));
  std::map<std::pair<std::string, std::string>, std::string> of_tables;
  for (std::string right, table, column; std::getline(rights, right, '|') &&
                                         std::getline(rights, table, '|') &&
                                         std::getline(rights, column);) {
    const std::string what = right + " (" + column + ") ON hapax." + table;
    database.run("REVOKE " + what + " FROM hapax_worker");
    EXPECT_EQ(read_missing_rights(session),
              Json({{{"table", table}, {"privilege", right + " of " + column}}}))
        << what;
    database.run("GRANT " + what + " TO hapax_worker");
    std::string& columns = of_tables[{right, table}];
    columns += (columns.empty() ? "" : ", ") + column;
  }
  EXPECT_EQ(of_tables.size(), 5U);
  for (const auto& [of, columns] : of_tables) {
    const auto& [right, table] = of;
    const std::string on = " ON hapax." + table;
    database.run("REVOKE " + right + on + " FROM hapax_worker");
    EXPECT_EQ(read_missing_rights(session), Json({{{"table", table}, {"privilege", right}}}));
    database.run("GRANT " + right + " (" + columns + ")" + on + " TO hapax_worker");
  }
}

TEST_F(Inspect, SeesUnloggedTablesThatTheRoleMayWrite) {
  EXPECT_EQ(read_unlogged_tables(session), Json::array());
  database.run(
      "CREATE UNLOGGED TABLE lost (n int); GRANT INSERT (n) ON lost TO hapax_worker;"
      "CREATE UNLOGGED TABLE read (n int); GRANT SELECT ON read TO hapax_worker;"
      "CREATE TABLE kept (n int); GRANT INSERT ON kept TO hapax_worker");
  EXPECT_EQ(read_unlogged_tables(session), Json({{{"name", "public.lost"}}}));
}

// Else it would run with the rights of the role that asks.
TEST_F(Inspect, RunsNoFunctionThatAnotherRoleHasPutIntoPublic) {
  database.run(
      "CREATE FUNCTION public.has_table_privilege(regclass, text) RETURNS boolean LANGUAGE plpgsql "
      "AS $$ BEGIN RAISE EXCEPTION 'mine'; END $$");
  EXPECT_NO_THROW(read_order_rights(session));
  EXPECT_NO_THROW(read_missing_rights(session));
}

TEST_F(Inspect, FindsHandlersTablesByTheirOwnSearchPath) {
  database.run("CREATE TABLE mine (n int); GRANT INSERT ON mine TO hapax_worker");
  EXPECT_EQ(read_missing_table_rights(session,
                                      Json::parse(R"([{"table": "mine", "privilege": "INSERT"}])")),
            Json::array());
}

TEST_F(Inspect, NamesTheSchemasInWhichAnyRoleMayCreate) {
  EXPECT_EQ(read_open_schemas(session), Json::array());
  database.run("GRANT CREATE ON SCHEMA public TO PUBLIC");
  EXPECT_EQ(read_open_schemas(session), Json({{{"name", "public"}}}));
}

TEST_F(Inspect, SeesTheServerAndTheRole) {
  const Json server = read_server(session);
  EXPECT_EQ(server.at("fsync"), "on");
  EXPECT_EQ(server.at("default_read_only"), "on");
  EXPECT_EQ(server.at("acts_as_superuser"), false);
  EXPECT_EQ(server.at("port"), test::postgres().port());
  // The session's own setting must not hide what RESET ALL would go back to.
  Session owner(database.owner());
  EXPECT_EQ(read_server(owner).at("default_read_only"), "off");
  EXPECT_EQ(read_server(owner).at("acts_as_superuser"), true);
}

// Each, as a dump made with --disable-triggers may leave it, and as a restore may lose or change
// it.
TEST_F(Inspect, SeesADisabledMissingOrChangedTrigger) {
  const auto told = [&](std::size_t n) {
    const Json one = read_triggers(session).at(n);
    return (one.at("enabled").is_null() ? "gone" : one.at("enabled").get<std::string>()) +
           (one.at("whole") == true ? " whole" : "");
  };
  ASSERT_EQ(read_triggers(session).size(), 7U);
  for (std::size_t n = 0; n < 7; ++n) {
    const Json one = read_triggers(session).at(n);
    const std::string name = one.at("name"), table = "hapax." + one.at("table").get<std::string>();
    const std::string made =
        database.value("SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = '" + name +
                       "' AND tgrelid = '" + table + "'::regclass");
    EXPECT_EQ(told(n), "O whole") << name;
    database.run("ALTER TABLE " + table + " ENABLE ALWAYS TRIGGER " + name);
    EXPECT_EQ(told(n), "A whole") << name;
    database.run("ALTER TABLE " + table + " DISABLE TRIGGER " + name);
    EXPECT_EQ(told(n), "D whole") << name;
    database.run("DROP TRIGGER " + name + " ON " + table);
    EXPECT_EQ(told(n), "gone") << name;
    database.run(
        "CREATE FUNCTION hapax.other() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN RETURN NULL; END'; CREATE TRIGGER " +
        name + " AFTER INSERT ON " + table + " EXECUTE FUNCTION hapax.other()");
    EXPECT_EQ(told(n), "O") << name;
    database.run("DROP FUNCTION hapax.other() CASCADE; " + made);
    EXPECT_EQ(told(n), "O whole") << name;
  }
  database.run("ALTER TABLE hapax.replays DISABLE TRIGGER ALL");
  ASSERT_EQ(read_triggers(session).size(), 9U);
  EXPECT_EQ(told(8), "D whole");
}

TEST_F(Inspect, SeesAnUnloggedTable) {
  database.run("ALTER TABLE hapax.attempts SET UNLOGGED");
  std::string unlogged;
  for (const Json& table : read_tables(session))
    if (table.at("persistence") == "u") unlogged += table.at("name").get<std::string>() + " ";
  EXPECT_EQ(unlogged, "attempts incarnation ");
}

TEST_F(Inspect, TellsThePortThatAUrlDials) {
  EXPECT_EQ(dialled_port("postgresql://u@h:6432/d"), 6432);
  EXPECT_EQ(dialled_port("host=h dbname=d"), 5432);
  EXPECT_EQ(dialled_port("postgresql://a:1,b:2/d"), std::nullopt);
  EXPECT_EQ(dialled_port("service=x"), std::nullopt);
}

TEST_F(Inspect, SeesOtherGroupsOfATopic) {
  database.run(
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, key_spec, scope) VALUES"
      " ('g', 't', 0, '', 's'), ('b', 't', 0, '', 's'), ('b', 't', 1, '', 's'),"
      " ('c', 'u', 0, '', 's')");
  EXPECT_EQ(read_other_groups(session, "g", {"t"}),
            Json({{{"group_id", "b"}, {"topic", "t"}, {"scope", "s"}}}));
}

TEST_F(Inspect, WaitingAreThoseAheadOfTheCheckpointWithoutADeadLetter) {
  database.run(
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, next_offset, key_spec,"
      " scope) VALUES ('g', 't', 0, 10, '', 's')");
  for (const char* const offset : {"9", "10", "11"}) attempt(offset);
  letter("11");
  const Json waiting = read_waiting(session, "g", 10);
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting[0].at("kafka_offset"), 10);
  EXPECT_EQ(waiting[0].at("count"), 2);
}

TEST_F(Inspect, FindsAKeyInEveryScope) {
  key("k");
  key("k", "failed", "other");
  EXPECT_EQ(read_keys(session, "k").size(), 2U);
  EXPECT_EQ(read_keys(session, "k", "s").size(), 1U);
  EXPECT_EQ(read_keys(session, "k", "s")[0].at("result"), "{\"a\":1}");
  EXPECT_EQ(read_keys(session, "k", "s", "tenant").size(), 0U);
}

TEST_F(Inspect, ListsKeysThatFit) {
  key("a");
  key("b", "failed");
  key("c", "failed");
  KeyFilter filter;
  filter.status = "failed";
  EXPECT_EQ(list_keys(session, filter).rows.size(), 2U);
  filter.from = "c";
  EXPECT_EQ(list_keys(session, filter).rows.size(), 1U);
  filter.older_than = std::chrono::hours(3);
  EXPECT_EQ(list_keys(session, filter).rows.size(), 0U);
  filter.older_than = std::chrono::hours(1);
  EXPECT_EQ(list_keys(session, filter).rows.size(), 1U);
}

TEST_F(Inspect, ListsTheRowsOfAKeyOverPagesOnceEach) {
  for (const char* const scope : {"s1", "s2", "s3"}) key("k", "completed", scope);
  key("l");
  KeyFilter filter;
  filter.limit = 1;
  std::string seen;
  for (Listed page = list_keys(session, filter); !page.rows.empty();
       page = list_keys(session, filter)) {
    const Json& row = page.rows.back();
    seen += row.at("key").get<std::string>() + "/" + row.at("scope").get<std::string>() + " ";
    filter.from = row.at("key");
    filter.behind.emplace(row.at("scope"), row.at("tenant"));
  }
  EXPECT_EQ(seen, "k/s1 k/s2 k/s3 l/s ");
}

TEST_F(Inspect, ListingKeysEndsAtTheBoundAndTellsTheKey) {
  database.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation,"
      " partition, kafka_offset, expires_at) SELECT to_char(i, 'FM000000'), 's',"
      " 'completed', 'g', 't', 1, 0, i, now() FROM generate_series(0, " +
      std::to_string(kMaxScan) + ") i");
  KeyFilter filter;
  filter.status = "failed";
  const Listed listed = list_keys(session, filter);
  EXPECT_FALSE(listed.all);
  EXPECT_EQ(listed.last, "099999");
  filter.from = "099999";
  EXPECT_TRUE(list_keys(session, filter).all);
}

TEST_F(Inspect, ListsDeadLettersOfTheGroupNewestFirst) {
  letter("1");
  letter("2");
  letter("3", "1", "other");
  letter("4", "1", "g", "payload_drift");
  DeadLetterFilter filter;
  filter.group = "g";
  const Json all = list_dead_letters(session, filter).rows;
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].at("kafka_offset"), 4);
  filter.reason = "rejected";
  EXPECT_EQ(list_dead_letters(session, filter).rows.size(), 2U);
  filter.before = all[1].at("id").get<std::int64_t>();
  EXPECT_EQ(list_dead_letters(session, filter).rows.size(), 1U);
  filter.key = "k1";
  EXPECT_EQ(list_dead_letters(session, filter).rows.size(), 1U);
  filter.before.reset();
  EXPECT_EQ(list_dead_letters(session, filter).rows.size(), 2U);
  filter.scope = "elsewhere";
  EXPECT_EQ(list_dead_letters(session, filter).rows.size(), 0U);
  filter.scope.reset();
  filter.key = "k2";
  EXPECT_EQ(list_dead_letters(session, filter).rows.size(), 0U);
}

TEST_F(Inspect, FindsTheDeadLetterOfTheNewestGeneration) {
  database.run(
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, generation, key_spec,"
      " scope) VALUES ('g', 't', 0, 3, '', 's')");
  letter("5", "1");
  letter("5", "2");
  const auto id = find_dead_letter(session, "g", "t", 0, 5);
  ASSERT_TRUE(id);
  EXPECT_EQ(read_dead_letter(session, *id).at("generation"), 2);
  EXPECT_FALSE(find_dead_letter(session, "g", "t", 0, 6));
  EXPECT_FALSE(find_dead_letter(session, "other", "t", 0, 5));
}

TEST_F(Inspect, ShowsADeadLetterWhole) {
  letter("5");
  const Json found = read_dead_letter(session, *find_dead_letter(session, "g", "t", 0, 5));
  EXPECT_EQ(found.at("payload"), "ff00");
  EXPECT_EQ(found.at("message_key"), "");
  EXPECT_EQ(found.at("headers"), Json::parse(R"([["62",null],["61",""],["62","31"]])"));
  EXPECT_TRUE(read_dead_letter(session, 999).is_null());
}

TEST_F(Inspect, CountsDeadLettersByReason) {
  letter("1");
  letter("2");
  letter("3", "1", "g", "payload_drift");
  letter("4", "1", "other");
  EXPECT_EQ(count_dead_letters(session, "g"),
            Json::parse(R"([{"reason":"rejected","count":2,"completed_since":0},
                                {"reason":"payload_drift","count":1,"completed_since":0}])"));
}

// The page that lists them asks every 3 seconds, and ended replays stay for good.
TEST_F(Inspect, OpenReplaysAreReadByTheirOwnIndex) {
  letter("1");
  letter("2", "1", "other");
  database.run(
      "INSERT INTO hapax.replays (dead_letter, who, why, ended_at, outcome) SELECT 1, 'bob', 'x', "
      "now(), 'completed' FROM generate_series(1, 20000); "
      "INSERT INTO hapax.replays (dead_letter, who, why) VALUES (1, 'ann', 'x'), (2, 'ann', 'x'); "
      "ANALYZE hapax.replays; ANALYZE hapax.dead_letters");
  const Json rows = list_replays(session, "g", std::nullopt, "open", 50);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("id"), 20'001);
  EXPECT_EQ(rows[0].at("state"), "open");
  EXPECT_TRUE(list_replays(session, "g", 20'001, "open", 50).empty());

  std::ostringstream statement;
  statement << std::ifstream(test::source_folder() / "sql/operator/list_open_replays.sql").rdbuf();
  database.run("PREPARE listing (text, bigint, integer) AS " + statement.str());
  for (const char* mode : {"force_generic_plan", "force_custom_plan"}) {
    const std::string plan = database.value("SET plan_cache_mode = " + std::string(mode) +
                                            "; EXPLAIN EXECUTE listing ('g', 30000, 50)");
    EXPECT_NE(plan.find("replays_open"), std::string::npos) << plan;
    EXPECT_EQ(plan.find("on replays "), plan.rfind("on replays ")) << plan;  // nothing else of it
    EXPECT_EQ(plan.find("Seq Scan on replays"), std::string::npos) << plan;
  }
}

}  // namespace
}  // namespace hapax::store
