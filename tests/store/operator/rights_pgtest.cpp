// The worker role can do its work (all tests of flow/ run as it) and nothing that would rewrite or
// forget history.
#include <gtest/gtest.h>

#include "store/operator/roles.hpp"
#include "store/transaction.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

class Rights : public testing::Test {
 protected:
  // The SQLSTATE that the worker role gets in a transaction that may write; "" if it is allowed.
  std::string state_of(const std::string& sql) {
    Session session(database.worker());
    Transaction transaction(session);
    try {
      transaction.run(sql);
      transaction.commit();
    } catch (const DatabaseError& error) {
      return error.sqlstate();
    }
    return "";
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

// Every right there is, so that none comes in unseen: a table's name and what may be done with it.
TEST_F(Rights, TheWorkerHasTheseAndNoOthers) {
  const auto list = [&](const std::string& view, const std::string& name) {
    return database.value("SELECT " + name +
                          " || ' ' || string_agg(privilege_type, ' ' ORDER BY "
                          "privilege_type) FROM information_schema." +
                          view + " WHERE grantee = 'hapax_worker' GROUP BY " + name +
                          " ORDER BY 1");
  };
  EXPECT_EQ(list("role_table_grants", "table_schema || '.' || table_name"),
            "hapax.attempts DELETE INSERT SELECT UPDATE\n"
            "hapax.checkpoints INSERT SELECT UPDATE\n"
            "hapax.dead_letters INSERT SELECT\n"
            "hapax.doubts INSERT SELECT UPDATE\n"
            "hapax.epochs SELECT\n"
            "hapax.forgotten SELECT\n"
            "hapax.halts INSERT SELECT UPDATE\n"
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
            "hapax.position_changes INSERT SELECT\n"
            "hapax.positions DELETE INSERT SELECT\n"
            "hapax.replays SELECT UPDATE\n"
            "hapax.schema_migrations SELECT\n"
            "hapax.store SELECT");
  EXPECT_EQ(database.value("SELECT string_agg(column_name, ' ' ORDER BY column_name) FROM "
                           "information_schema.role_column_grants WHERE grantee = 'hapax_worker' "
                           "AND table_name = 'dead_letters' AND privilege_type = 'UPDATE'"),
            "ended_as ended_at ended_by ended_why published_at");
  EXPECT_EQ(database.value("SELECT string_agg(column_name, ' ' ORDER BY column_name) FROM "
                           "information_schema.role_column_grants WHERE grantee = 'hapax_worker' "
                           "AND table_name = 'outbox_halts' AND privilege_type = 'UPDATE'"),
            "detail halted_by reason");
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

TEST_F(Rights, TheBinaryGivesTheSameRightsAsPsqlWithTheFile) {
  const std::string rights =
      "SELECT table_name, privilege_type FROM information_schema.role_table_grants "
      "WHERE table_schema = 'hapax' AND grantee = ";
  database.run("CREATE ROLE \"another worker\"");
  Session owner(database.owner());
  grant_worker(owner, "another worker");
  EXPECT_EQ(database.value(rights + "'another worker' ORDER BY 1, 2"),
            database.value(rights + "'hapax_worker' ORDER BY 1, 2"));
  database.run("DROP OWNED BY \"another worker\"; DROP ROLE \"another worker\"");
}

}  // namespace
}  // namespace hapax::store
