// Migrations: up, down, at once, changed; and the statements that must fit the schema they make.
#include "store/operator/migrate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <thread>

#include "store/transaction.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Migrate : public testing::Test {
 protected:
  Migrate() : session(database.owner()) {}

  std::string message_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "(no exception)";
  }

  test::Database database{test::Database::Content::empty};
  Session session;
};

std::vector<int> all() {
  std::vector<int> numbers;
  for (int i = 1; i <= kSchema; ++i) numbers.push_back(i);
  return numbers;
}

TEST_F(Migrate, RefusesADatabaseThatWouldKeepOtherCharacters) {
  database.run(
      "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
  store::ConnectOptions options = database.owner();
  const auto name = options.url.rfind(database.name());
  options.url.replace(name, database.name().size(), "latin");
  {
    Session latin(options);
    EXPECT_NE(schema_problem(latin)->find("LATIN1"), std::string::npos);
  }
  database.run("DROP DATABASE latin");
}

TEST_F(Migrate, UpDownAndUpAgain) {
  EXPECT_EQ(migrate_up(session), all());
  EXPECT_EQ(migrate_up(session), std::vector<int>());
  EXPECT_EQ(migrate_down(session, kSchema - 1), std::vector<int>{kSchema});
  EXPECT_EQ(migrate_up(session), std::vector<int>{kSchema});
  std::vector<int> newest_first = all();
  std::ranges::reverse(newest_first);
  EXPECT_EQ(migrate_down(session, 0), newest_first);
  EXPECT_EQ(
      database.value("SELECT relname FROM pg_class WHERE relnamespace = 'hapax'::regnamespace "
                     "AND relkind = 'r'"),
      "schema_migrations");
  EXPECT_EQ(database.count("SELECT count(*) FROM pg_proc WHERE pronamespace = "
                           "'hapax'::regnamespace"),
            0);
  EXPECT_EQ(migrate_up(session), all());
}

TEST_F(Migrate, BySomeoneElseLeavesTheTablesToTheirOwner) {
  const std::string app = "app_" + database.name();
  database.run("CREATE ROLE " + app + " LOGIN; GRANT CREATE ON DATABASE " + database.name() +
               " TO " + app);
  ConnectOptions options = database.owner();
  const auto user = options.url.find("//postgres@");
  ASSERT_NE(user, std::string::npos) << options.url;
  options.url.replace(user, 11, "//" + app + "@");
  {
    Session of_app(options);
    migrate_up(of_app);
    migrate_down(of_app, 14);
  }
  EXPECT_EQ(migrate_up(session).size(), static_cast<std::size_t>(kSchema - 14));
  EXPECT_EQ(database.value("SELECT DISTINCT relowner::regrole FROM pg_class "
                           "WHERE relnamespace = 'hapax'::regnamespace AND relkind = 'r'"),
            app);
}

TEST_F(Migrate, ASecondRunWaitsAndFindsNothingToDo) {
  std::vector<int> done[2];
  std::vector<std::jthread> runs;
  {
    // Both wait for the lock that a third one holds, so both see an empty database first. Tables
    // are not waited for as long.
    ConnectOptions impatient = database.owner();
    impatient.lock_timeout = std::chrono::milliseconds(1);
    Transaction holder(session);
    holder.run(std::string("SELECT pg_advisory_xact_lock(448345206136)"));
    for (auto& mine : done)
      runs.emplace_back([&] {
        Session own(impatient);
        mine = migrate_up(own);
      });
    database.wait_until("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
                        "2");
  }
  runs.clear();
  std::vector<int> both = done[0];
  both.insert(both.end(), done[1].begin(), done[1].end());
  std::ranges::sort(both);
  EXPECT_EQ(both, all());
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.schema_migrations"), kSchema);
}

TEST_F(Migrate, RefusesAMigrationThatWasAppliedWithAnotherText) {
  migrate_up(session);
  database.run("UPDATE hapax.schema_migrations SET checksum = 'other' WHERE number = 1");
  EXPECT_NE(message_of([&] { migrate_up(session); }).find("migration 1 "), std::string::npos);
  EXPECT_NE(message_of([&] { migrate_down(session, 0); }).find("migration 1 "), std::string::npos);
  EXPECT_TRUE(migration_states(session)[0].changed);
}

TEST_F(Migrate, TakesNothingBackFromUnderANewerOne) {
  migrate_up(session);
  database.run("INSERT INTO hapax.schema_migrations (number, name, checksum) VALUES (" +
               std::to_string(kSchema + 1) + ", 'of_tomorrow', '')");
  EXPECT_NE(message_of([&] { migrate_down(session, 0); }).find("of_tomorrow"), std::string::npos);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.schema_migrations"), kSchema + 1);
}

// As if `migrate up` of another operator came between two migrations that this one takes back.
TEST_F(Migrate, TakesNothingBackFromUnderOneThatWasAppliedMeanwhile) {
  migrate_up(session);
  database.run(
      "CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO "
      "hapax.schema_migrations SELECT OLD.*; RETURN NULL; END $$; CREATE TRIGGER again AFTER "
      "DELETE "
      "ON hapax.schema_migrations FOR EACH ROW EXECUTE FUNCTION again()");
  EXPECT_NE(message_of([&] { migrate_down(session, kSchema - 2); }).find("was applied meanwhile"),
            std::string::npos);
  EXPECT_EQ(migration_states(session).size(), static_cast<std::size_t>(kSchema));
}

TEST_F(Migrate, NamesAMigrationThatIsMissingBelowOthers) {
  migrate_up(session);
  migrate_down(session, kSchema - 2);
  database.run("INSERT INTO hapax.schema_migrations (number, name, checksum) VALUES (" +
               std::to_string(kSchema) + ", 'alone', '')");
  EXPECT_EQ(schema_problem(session, kSchema),
            "migration " + std::to_string(kSchema - 1) +
                " is missing, and newer ones are there: run `hapax migrate up`");
}

// What Kafka has of a batch that an operator has retried is not known yet.
TEST_F(Migrate, KeepsTheMarkOfABatchThatWasHalted) {
  migrate_up(session);
  database.run(
      "INSERT INTO hapax.outbox_batches SELECT 'g', 't', 1, n, n, '{}', now() FROM "
      "gen_random_uuid() n");
  EXPECT_NE(message_of([&] { migrate_down(session, 12); }).find("on its way"), std::string::npos);
}

// A worker's COMMIT comes between the look for rows that refuse it and the DROP.
TEST_F(Migrate, KeepsTheNoteOfAnEditedReplayWhoseCallIsNotDone) {
  migrate_up(session);
  database.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at, token, calls, called_at, alone, crashes) "
      "VALUES ('k', 's', 'unknown', 'g', 't', 1, 0, 7, 'infinity', 100, 1, now(), false, 0);"
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
      "timestamp_type, header_names, header_values, reason, error, attempts, handler, "
      "handler_version, scope, first_at) VALUES ('g', 't', 1, 0, 7, 'none', '{}', '{}', "
      "'rejected', "
      "'no', 1, 'h', '1', 's', now());"
      "INSERT INTO hapax.replays (dead_letter, who, why, edited, key, tenant, token, ended_at) "
      "SELECT id, 'ann', '', true, 'k', '', 100, now() FROM hapax.dead_letters");
  EXPECT_NE(message_of([&] { migrate_down(session, 17); }).find("its call is not done"),
            std::string::npos);
  database.run("UPDATE hapax.idempotency_keys SET status = 'completed'");
  EXPECT_EQ(migrate_down(session, 17), std::vector<int>{18});
}

TEST_F(Migrate, TakesNoTableBackOfWhichARowIsNotCommittedYet) {
  const std::map<std::string, std::string> rows = {
      {"positions", "VALUES ('g', 't', 0, 1, 7)"},
      {"outbox_batches",
       "VALUES ('g', 't', 1, gen_random_uuid(), gen_random_uuid(), '{1}', now())"},
      {"outbox", "VALUES (DEFAULT, 'g', 't', '', '', '[]', '', 's', 1, 0, 7, now())"}};
  for (const auto& [table, row] : rows) {
    migrate_up(session);
    std::string said;
    {
      Session worker(database.owner());
      Transaction inserting(worker);
      inserting.run("INSERT INTO hapax." + table + " " + row);
      std::jthread down([&] {
        Session own(database.owner());
        said = message_of([&] { migrate_down(own, 0); });
      });
      database.wait_until("SELECT count(*) FROM pg_locks WHERE NOT granted", "1");
      inserting.commit();
    }
    EXPECT_NE(said, "(no exception)") << table;
    EXPECT_EQ(database.count("SELECT count(*) FROM hapax." + table), 1);
    database.run("DELETE FROM hapax." + table);
  }
}

TEST_F(Migrate, AFailedMigrationLeavesNothingOfItself) {
  database.run("CREATE SCHEMA hapax; CREATE TABLE hapax.checkpoints (mine int)");
  EXPECT_NE(message_of([&] { migrate_up(session); }).find("checkpoints"), std::string::npos);
  EXPECT_EQ(database.value("SELECT max(number) FROM hapax.schema_migrations"), "1");
  EXPECT_EQ(database.value("SELECT to_regclass('hapax.store')"), "null");
}

TEST_F(Migrate, TellsAWorkerWhetherItCanRun) {
  EXPECT_NE(schema_problem(session)->find("hapax migrate up"), std::string::npos);
  migrate_up(session);
  EXPECT_EQ(schema_problem(session), std::nullopt);
  const auto newest = [&](int number) {
    database.run("INSERT INTO hapax.schema_migrations (number, name, checksum) VALUES (" +
                 std::to_string(number) + ", 'newer', '')");
  };
  newest(kSchema + 1);
  EXPECT_EQ(schema_problem(session), std::nullopt);
  EXPECT_TRUE(migration_states(session).back().unknown);
  newest(kSchema + 2);
  EXPECT_NE(schema_problem(session)->find("newer hapax"), std::string::npos);
  EXPECT_EQ(migrate_up(session), std::vector<int>());
}

TEST_F(Migrate, EveryStatementOfOursPrepares) {
  migrate_up(session);
  int prepared = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::source_folder() / "sql")) {
    if (entry.path().extension() != ".sql" || entry.path().stem() == "roles") continue;  // psql's
    EXPECT_NO_THROW(
        database.run("PREPARE p" + std::to_string(++prepared) + " AS " + text_of(entry.path())))
        << entry.path();
  }
  EXPECT_GT(prepared, 20);
}

// The output of pg_dump, without lines that differ between releases of PostgreSQL.
std::string schema_of(const test::Database& database) {
  const auto output = test::postgres().folder() / (database.name() + ".sql");
  sandbox::run_to_end({{"pg_dump", "--schema-only", "--schema=hapax", "--no-owner",
                        "--no-privileges", database.owner().url},
                       {},
                       {},
                       output},
                      std::chrono::seconds(60));
  std::istringstream dump(text_of(output));
  std::string text;
  for (std::string line; std::getline(dump, line);) {
    const auto starts_with = [&](const char* prefix) { return line.starts_with(prefix); };
    if (line.empty() || starts_with("--") || starts_with("SET ") || starts_with("\\") ||
        starts_with("SELECT pg_catalog.set_config"))
      continue;
    text += line + '\n';
  }
  return text;
}

constexpr const char* kHead =
    "-- The schema that all migrations make, as pg_dump shows it, for reviews and for the test "
    "that\n"
    "-- holds it. After a new migration: HAPAX_WRITE_SCHEMA=1 hapax_pgtests "
    "--gtest_filter='Migrate.*Dump'\n";

TEST_F(Migrate, TheSchemaIsTheCommittedDump) {
  migrate_up(session);
  const auto path = test::source_folder() / "tests/store/schema.sql";
  const std::string made = kHead + schema_of(database);
  if (std::getenv("HAPAX_WRITE_SCHEMA") != nullptr) std::ofstream(path) << made;
  EXPECT_EQ(made, text_of(path));
}

// It would copy the epoch before the take, if the default of the database held for it.
TEST_F(Migrate, ThePrintedTextSeesWhatWasCommittedWhileItWaited) {
  constexpr int kBefore = 15;  // the next one copies epochs, behind a lock on checkpoints
  migrate_up(session);
  migrate_down(session, kBefore);
  database.run(
      "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = "
      "''repeatable read''', current_database()); END $$;"
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, next_offset, highest, "
      "generation, epoch, key_spec, scope) VALUES ('g', 't', 0, 0, 0, 1, 5, 'k', 's')");
  Transaction taking(session);
  taking.run("UPDATE hapax.checkpoints SET epoch = 6");
  const std::string text = migration_text();
  test::Database same;  // by a session of its own, which has the default
  same.look_at(test::postgres(), database.name());
  std::thread migrating([&] { same.run(text.substr(text.find("\n-- 16 "))); });
  database.wait_until(
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
      "wait_event_type = 'Lock'",
      "1");
  taking.commit();
  migrating.join();
  EXPECT_EQ(database.value("SELECT epoch FROM hapax.epochs"), "6");
}

TEST_F(Migrate, ThePrintedTextMakesTheSameSchema) {
  database.run(migration_text());
  test::Database migrated;
  EXPECT_EQ(schema_of(database), schema_of(migrated));
  EXPECT_EQ(migrate_up(session), std::vector<int>());
}

}  // namespace
}  // namespace hapax::store
