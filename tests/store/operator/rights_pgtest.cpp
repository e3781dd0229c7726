// The worker role can do its work (all tests of flow/ run as it) and nothing that would rewrite or
// forget history. Nor does an operator write more of it than an order needs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "store/operator/roles.hpp"
#include "store/transaction.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

class Rights : public testing::Test {
 protected:
  // The SQLSTATE that a role gets in a transaction that may write; "" if it is allowed.
  std::string state_of(const std::string& sql) { return state_of(sql, database.worker()); }
  static std::string state_of(const std::string& sql, const ConnectOptions& role) {
    Session session(role);
    Transaction transaction(session);
    try {
      transaction.run(sql);
      transaction.commit();
    } catch (const DatabaseError& error) {
      return error.sqlstate();
    }
    return "";
  }

  // Each right on a whole table, and each on single columns.
  std::string rights_of(const std::string& role) {
    return database.value(
               "SELECT 'hapax.' || table_name || ' ' || string_agg(privilege_type, ' ' ORDER BY "
               "privilege_type) FROM information_schema.role_table_grants WHERE table_schema = "
               "'hapax' AND grantee = '" +
               role + "' GROUP BY table_name ORDER BY 1") +
           "\n" +
           database.value(
               "SELECT format('%s %s: %s', attrelid::regclass, privilege_type, "
               "string_agg(attname, ' ' ORDER BY attnum)) FROM pg_attribute, aclexplode(attacl) "
               "WHERE grantee = '\"" +
               role + "\"'::regrole GROUP BY attrelid, privilege_type ORDER BY 1");
  }

  test::Database database;
};

TEST_F(Rights, TheWorkerCannotChangeTheSchemaOrTheSeal) {
  for (const char* sql : {"ALTER TABLE hapax.idempotency_keys ADD x int",
                          "ALTER TABLE hapax.idempotency_keys DISABLE TRIGGER seal",
                          "DROP TRIGGER seal ON hapax.idempotency_keys",
                          "DROP TABLE hapax.dead_letters", "TRUNCATE hapax.idempotency_keys",
                          "CREATE TABLE hapax.mine (n int)", "DROP FUNCTION hapax.seal(text)",
                          "CREATE OR REPLACE FUNCTION hapax.seal(nonce text) RETURNS void "
                          "LANGUAGE sql AS ''",
                          "CREATE TEMP TABLE mine (n int); CREATE TRIGGER t AFTER DELETE ON mine "
                          "EXECUTE FUNCTION hapax.note_forgotten()",
                          "ALTER TABLE hapax.idempotency_keys DISABLE TRIGGER forgotten",
                          "SET session_replication_role = replica"})
    EXPECT_EQ(state_of(sql), "42501") << sql;
}

TEST_F(Rights, TheWorkerCannotRewriteOrForgetHistory) {
  for (const char* sql :
       {"UPDATE hapax.dead_letters SET reason = ''", "DELETE FROM hapax.dead_letters",
        "DELETE FROM hapax.checkpoints", "DELETE FROM hapax.halts",
        "UPDATE hapax.store SET id = gen_random_uuid()", "DELETE FROM hapax.store",
        "UPDATE hapax.incarnation SET id = gen_random_uuid()", "DELETE FROM hapax.incarnation",
        "UPDATE hapax.schema_migrations SET checksum = ''", "DELETE FROM hapax.schema_migrations",
        "INSERT INTO hapax.operator_log (who, action, target, why, facts) "
        "VALUES ('w', 'a', 't', 'y', '{}')",
        "UPDATE hapax.forgotten SET until = '-infinity'", "DELETE FROM hapax.operator_log",
        "DELETE FROM hapax.position_changes", "UPDATE hapax.position_changes SET who = ''",
        "DELETE FROM hapax.replays",
        "INSERT INTO hapax.replays (dead_letter, who, why) VALUES (1, 'w', 'y')"})
    EXPECT_EQ(state_of(sql), "42501") << sql;
}

// What an operator decided is an operator's to write, and PostgreSQL's clock tells when.
TEST_F(Rights, TheWorkerCannotDecideInAnOperatorsPlace) {
  for (const char* sql :
       {"UPDATE hapax.halts SET ended_at = now(), ended_by = 'ann', decision = 'skip'",
        "UPDATE hapax.halts SET reason = ''",
        "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, reason, "
        "detail, halted_by, ended_at, ended_by, decision) "
        "VALUES ('g', 't', 0, false, 1, 'r', 'd', 'w', now(), 'ann', 'skip')",
        "UPDATE hapax.replays SET who = 'ann'", "UPDATE hapax.replays SET why = ''",
        "UPDATE hapax.replays SET edited = true, payload = '1'",
        "UPDATE hapax.replays SET dead_letter = 2", "UPDATE hapax.replays SET wanted_at = now()",
        "INSERT INTO hapax.position_changes (at, group_id, topic, partition, generation, "
        "to_offset, cause, who, why) VALUES ('-infinity', 'g', 't', 0, 1, 1, 'skip', 'w', 'y')",
        "INSERT INTO hapax.position_changes (id, group_id, topic, partition, generation, "
        "to_offset, cause, who, why) OVERRIDING SYSTEM VALUE VALUES (1, 'g', 't', 0, 1, 1, 'skip', "
        "'w', 'y')"})
    EXPECT_EQ(state_of(sql), "42501") << sql;
}

TEST_F(Rights, TheOperatorCannotRewriteOrderedHistory) {
  const ConnectOptions role = database.make_operator();
  for (const char* sql :
       {"INSERT INTO hapax.operator_log (id, who, action, target, why, facts) OVERRIDING SYSTEM "
        "VALUE VALUES (7, 'ann', 'a', 't', 'y', '{}')",
        "INSERT INTO hapax.operator_log (at, who, action, target, why, facts) "
        "VALUES ('-infinity', 'ann', 'a', 't', 'y', '{}')",
        "UPDATE hapax.operator_log SET who = 'bob'", "DELETE FROM hapax.operator_log",
        "INSERT INTO hapax.position_changes (at, group_id, topic, partition, generation, "
        "to_offset, cause, who, why) VALUES ('-infinity', 'g', 't', 0, 1, 1, 'skip', 'w', 'y')",
        "UPDATE hapax.halts SET reason = ''", "UPDATE hapax.outbox_halts SET record_key = ''",
        "UPDATE hapax.replays SET who = 'bob'", "UPDATE hapax.replays SET payload = '1'",
        "UPDATE hapax.idempotency_keys SET result = '1'",
        "UPDATE hapax.idempotency_keys SET key = 'other'",
        "UPDATE hapax.idempotency_keys SET fingerprint = NULL"})
    EXPECT_EQ(state_of(sql, role), "42501") << sql;
}

// Every right there is, so that none comes in unseen: a table's name and what may be done with it.
TEST_F(Rights, TheWorkerHasTheseAndNoOthers) {
  EXPECT_EQ(rights_of("hapax_worker"),
            "hapax.attempts DELETE INSERT SELECT UPDATE\n"
            "hapax.checkpoints INSERT SELECT UPDATE\n"
            "hapax.dead_letters INSERT SELECT\n"
            "hapax.doubts INSERT SELECT UPDATE\n"
            "hapax.epochs SELECT\n"
            "hapax.forgotten SELECT\n"
            "hapax.halts SELECT\n"
            "hapax.holders DELETE INSERT SELECT UPDATE\n"
            "hapax.idempotency_keys DELETE INSERT SELECT UPDATE\n"
            "hapax.incarnation INSERT SELECT\n"
            "hapax.leases INSERT SELECT UPDATE\n"
            "hapax.logs INSERT SELECT UPDATE\n"
            "hapax.outbox DELETE INSERT SELECT\n"
            "hapax.outbox_batches INSERT SELECT UPDATE\n"
            "hapax.outbox_clusters INSERT SELECT\n"
            "hapax.outbox_counts SELECT\n"
            "hapax.outbox_halts INSERT SELECT\n"
            "hapax.passed INSERT SELECT UPDATE\n"
            "hapax.position_changes SELECT\n"
            "hapax.positions DELETE INSERT SELECT\n"
            "hapax.replays SELECT\n"
            "hapax.schema_migrations SELECT\n"
            "hapax.store SELECT\n"
            "hapax.dead_letters UPDATE: ended_at ended_as ended_by ended_why published_at\n"
            "hapax.halts INSERT: group_id topic partition whole_route generation kafka_offset "
            "reason detail halted_by\n"
            "hapax.outbox_halts UPDATE: reason detail halted_by\n"
            "hapax.position_changes INSERT: group_id topic partition generation from_offset "
            "to_offset cause who why\n"
            "hapax.replays UPDATE: runs claimed_by claimed_until next_try last_error sqlstate "
            "ended_at outcome detail key tenant token");
  EXPECT_EQ(database.value("SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR "
                           "rolbypassrls FROM pg_roles WHERE rolname = 'hapax_worker'"),
            "f");
  EXPECT_EQ(database.value("SELECT count(*) FROM pg_auth_members WHERE member = "
                           "'hapax_worker'::regrole"),
            "0");
}

TEST_F(Rights, TheWorkerSeesNothingOfOtherSchemasAndMakesNothing) {
  database.run(
      "CREATE SCHEMA books; CREATE TABLE books.ledger (n int);"
      "CREATE TABLE public.others (n int)");
  for (const char* sql :
       {"SELECT * FROM books.ledger", "SELECT * FROM public.others", "DELETE FROM public.others",
        "CREATE SCHEMA mine", "CREATE TABLE public.mine (n int)", "CREATE ROLE mine",
        "SELECT * FROM pg_authid", "SELECT * FROM hapax.operator_log",
        "ALTER ROLE postgres PASSWORD 'x'", "SET ROLE postgres", "COPY hapax.store TO '/tmp/x'",
        "COPY hapax.store TO PROGRAM 'true'", "SELECT pg_read_file('/etc/passwd')",
        "SET SESSION AUTHORIZATION postgres"})
    EXPECT_EQ(state_of(sql), "42501") << sql;
}

TEST_F(Rights, TheWorkerWritesOnlyInATransactionThatIsReadWrite) {
  Session session(database.worker());
  EXPECT_EQ(database.value("SELECT rolconfig FROM pg_roles WHERE rolname = 'hapax_worker'"),
            "{default_transaction_read_only=on}");
  Transaction transaction(session);
  transaction.run(std::string("ROLLBACK"));
  try {
    transaction.run(std::string("DELETE FROM hapax.idempotency_keys"));
    FAIL() << "written outside of a transaction";
  } catch (const DatabaseError& error) {
    EXPECT_EQ(error.sqlstate(), "25006");
  }
}

// Also to a role that has more from an earlier roles.sql.
TEST_F(Rights, TheBinaryGivesTheSameRightsAsPsqlWithTheFile) {
  database.run(
      "CREATE ROLE \"another worker\"; GRANT SELECT, INSERT, UPDATE ON hapax.halts, "
      "hapax.replays, hapax.position_changes TO \"another worker\"");
  Session owner(database.owner());
  grant_worker(owner, "another worker");
  EXPECT_EQ(rights_of("another worker"), rights_of("hapax_worker"));
  EXPECT_EQ(database.value("SELECT rolconfig FROM pg_roles WHERE rolname = 'another worker'"),
            "{default_transaction_read_only=on}");
  database.run("DROP OWNED BY \"another worker\"; DROP ROLE \"another worker\"");
}

TEST_F(Rights, AnOperatorLosesWhatAnEarlierFileGave) {
  database.make_operator();
  const std::string rights = rights_of("hapax_operator");
  database.run(
      "GRANT INSERT, UPDATE ON hapax.operator_log, hapax.position_changes, hapax.halts, "
      "hapax.replays, hapax.idempotency_keys, hapax.outbox_halts TO hapax_operator");
  database.make_operator();
  EXPECT_EQ(rights_of("hapax_operator"), rights);
}

// The decisions about a copied database, and the end of a group, are the owner's.
TEST_F(Rights, AreEnoughForEachStatement) {
  const ConnectOptions worker = database.worker(), operator_role = database.make_operator();
  const std::set<std::string> of_owner{"adopt_database", "delete_checkpoints", "delete_group",
                                       "lock_store"};
  for (const std::string folder : {"message", "worker", "outside", "operator"})
    for (const auto& file :
         std::filesystem::directory_iterator(test::source_folder() / "sql" / folder)) {
      std::ifstream text(file.path());
      const std::string sql{std::istreambuf_iterator<char>(text), {}};
      int parameters = 0;
      for (std::size_t at = 0; (at = sql.find('$', at)) != std::string::npos; ++at)
        parameters = std::max(parameters, std::atoi(sql.c_str() + at + 1));
      std::string values;
      for (int n = 0; n < parameters; ++n) values += n == 0 ? "(NULL" : ", NULL";
      if (parameters > 0) values += ")";
      const std::string name = file.path().stem();
      EXPECT_EQ(state_of("PREPARE p AS " + sql + "; EXPLAIN EXECUTE p" + values,
                         folder == "operator" ? operator_role : worker),
                of_owner.contains(name) ? "42501" : "")
          << name;
    }
}

// Each worker is busy while an operator runs the file for the next release.
TEST_F(Rights, AFileIsOneTransaction) {
  for (const char* file : {"sql/roles.sql", "sql/operator.psql"}) {
    std::ifstream text(test::source_folder() / file);
    std::string all, line;
    while (std::getline(text, line))
      if (!line.empty() && !line.starts_with("--")) all += line + "\n";
    EXPECT_TRUE(all.starts_with("BEGIN READ WRITE;\n")) << file;
    EXPECT_TRUE(all.ends_with("\nCOMMIT;\n")) << file;
  }
}

}  // namespace
}  // namespace hapax::store
