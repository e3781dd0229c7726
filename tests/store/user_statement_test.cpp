// What a handler's text may leave in its session, by the text alone.
#include "store/user_statement.hpp"

#include <gmock/gmock.h>

namespace hapax::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(UserText, OfPlainQueriesLeavesNothingAndCallsWhatItNames) {
  for (const char* text :
       {"SELECT 1", " (SELECT a FROM t FOR UPDATE)", "insert into t select * from u",
        "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", "UPDATE t SET a = $1 WHERE b = $2",
        "DELETE FROM t", "VALUES (1)", "TABLE t",
        "MERGE INTO t USING u ON a = b WHEN MATCHED THEN "
        "UPDATE SET c = 1",
        "SELECT 'INTO' AS \"into\"", "SELECT $$ into $$, $tag$ INTO $$ $tag$", "SELECT E'\\' into'",
        "SELECT /* INTO /* */ INTO */ 1 -- INTO",
        "WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM x"}) {
    const UserText read = read_user_text(text);
    EXPECT_EQ(read.leaves, Leaves::nothing) << text;
    EXPECT_FALSE(read.controls_transaction) << text;
  }
  EXPECT_THAT(read_user_text("SELECT Foo(1), s . \"Bar\" (2), 'baz(3)', $1 /* no (4) */").calls,
              ElementsAre("Bar", "foo"));
  EXPECT_THAT(read_user_text("SELECT a FROM t WHERE b = $1").calls, IsEmpty());
  EXPECT_THAT(read_user_text("SELECT row.aside, (row) . \"Aside\", 1.5 FROM t row").calls,
              ElementsAre("Aside", "aside"));
  EXPECT_THAT(read_user_text("SELECT E'x'\n'b\\'c', aside(1), ' '").calls, ElementsAre("aside"));
  EXPECT_THAT(read_user_text("SELECT E'x' --'\n'b\\'c', aside(1), ' '").calls,
              ElementsAre("aside"));
  EXPECT_THAT(read_user_text("SELECT 'x'\n'b\\', aside(1), ' '").calls, ElementsAre("aside"));
}

TEST(UserText, OfAnythingElseLeavesSomething) {
  for (const char* text : {"SELECT 1 INTO t",
                           "SELECT 1 INTO  TEMP t",
                           "SELECT 1 INTO\nTEMP t",
                           "SELECT 1 into/**/temp t",
                           "SELECT 1 INTO LOCAL TEMP t",
                           "SELECT 1 INTO pg_temp.t",
                           "(SELECT 1 INTO TEMP t)",
                           "SELECT count(*) insert INTO TEMP t FROM u",
                           "SELECT insert INTO TEMP t FROM u",
                           "WITH x AS (SELECT 1) SELECT * INTO TEMP t FROM x",
                           "SELECT U&\"s\\0065t_config\"('a', 'b', false)",
                           "SET search_path TO a",
                           "/* SELECT */ SET a TO b",
                           "-- SELECT\nSET a TO b",
                           "SELECT 'it''s' INTO t",
                           "SELECT '\\' INTO t",
                           "SELECT $1 INTO t",
                           "SELECT a$b INTO t$c",
                           "\"select\" 1",
                           ";",
                           "CREATE TEMP TABLE t (a int)",
                           "LISTEN a",
                           "UPDATE pg_catalog.pg_settings SET setting = 1",
                           "EXPLAIN SELECT 1"})
    EXPECT_NE(read_user_text(text).leaves, Leaves::nothing) << text;
  EXPECT_EQ(read_user_text("SELECT " + std::string(63, 'a') + "()").leaves, Leaves::nothing);
  EXPECT_NE(read_user_text("SELECT " + std::string(64, 'a') + "()").leaves, Leaves::nothing);
  for (const char* text : {"PREPARE a AS SELECT 1", "deallocate a", "DISCARD ALL"})
    EXPECT_EQ(read_user_text(text).leaves, Leaves::prepared_statements) << text;
}

TEST(UserText, OfWhatMayEndTheTransactionIsKnown) {
  for (const char* text : {"COMMIT", "END", "rollback", "ABORT", "BEGIN", "START TRANSACTION",
                           "SAVEPOINT a", "RELEASE a", "PREPARE TRANSACTION 'a'", "EXECUTE a",
                           "CALL a()", "DO $$ $$", "/**/ COMMIT", "(COMMIT", "whatever", ""})
    EXPECT_TRUE(read_user_text(text).controls_transaction) << text;
  EXPECT_FALSE(read_user_text("SET LOCAL a TO b").controls_transaction);
}

}  // namespace
}  // namespace hapax::store
