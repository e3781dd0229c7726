// What sql/erase.psql erases of letters and keys that are named, though their text is not found.
// Its runbook is typed in tests/e2e/erase_e2etest.cpp.
#include <gtest/gtest.h>

#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

class Erase : public testing::Test {
 protected:
  void erase(const std::string& letters, const std::string& keys) {
    const sandbox::TemporaryFolder folder("erase");
    sandbox::run_to_end(
        {.argv = {"psql", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-v", "text=found nowhere", "-v",
                  "erase=yes", "-v", "letters=" + letters, "-v", "keys=" + keys, "-f",
                  test::source_folder() / "sql/erase.psql", database.owner().url},
         .output = folder.path() / "log"},
        std::chrono::seconds(60));
  }

  test::Database database;
};

// Else it would run as a tombstone, if it were opened again.
TEST_F(Erase, ALetterIsKnownToHaveLostItsBytes) {
  database.run(
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
      "timestamp_type, payload, header_names, header_values, reason, error, attempts, handler, "
      "handler_version, scope, first_at, ended_at, ended_as) VALUES ('g', 't', 1, 0, 7, 'none', "
      "'p', '{}', '{}', 'rejected', 'no', 1, 'h', '1', 's', now(), now(), 'discarded');"
      "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, kafka_offset, "
      "reason, detail, halted_by, ended_at) VALUES ('g', 't', 0, false, 1, 7, 'unexpected_error', "
      "'Müller', 'w', now()), ('g', 't', 0, false, 1, 8, 'unexpected_error', 'bob', 'w', now())");
  erase("{1}", "{}");
  EXPECT_EQ(database.value("SELECT payload, other->>'bytes_kept' FROM hapax.dead_letters"),
            "null|false");
  EXPECT_EQ(database.value("SELECT string_agg(detail, ' ' ORDER BY kafka_offset) FROM hapax.halts"),
            "erased bob");
}

// Else a client that asks for its operation hears that it took effect.
TEST_F(Erase, WhatEndedWithoutAnEffectStaysSo) {
  database.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at, error, result) SELECT key, 's', 'completed', 'g', 't', "
      "1, 0, 7, 'infinity', error, '{}' FROM (VALUES ('p0', 'given up by ann: Bob'), "
      "('p1', 'refused: Bob'), ('p2', NULL)) AS k (key, error)");
  erase("{}", "{p0,p1,p2}");
  const std::string erased = database.value(
      "SELECT string_agg(coalesce(error, 'none'), ', ' ORDER BY key) FROM hapax.idempotency_keys "
      "WHERE result IS NULL");
  EXPECT_EQ(erased, "given up by an operator (erased), erased, none");
}

TEST_F(Erase, TheOperatorsLogHoldsNothingOfAKeyThatIsNamed) {
  for (const char* const key : {"p0", "p1"})
    database.run(std::string("INSERT INTO hapax.operator_log (who, action, target, why, facts) "
                             "VALUES ('ann', 'keys forget', 'k', 'w', "
                             "'{\"before\": {\"key\": \"") +
                 key + R"(", "result": {"name": "M\u00fcller"}}}'))");
  erase("{}", "{p0}");
  EXPECT_EQ(database.value("SELECT string_agg(facts->>'erased', ' '), count(*) FILTER (WHERE "
                           "facts #>> '{before,key}' = 'p1') FROM hapax.operator_log"),
            "true|1");
}

}  // namespace
}  // namespace hapax::store
