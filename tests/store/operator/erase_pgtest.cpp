// What sql/erase.psql erases of letters and keys that are named, though their text is not found.
// Its runbook is typed in tests/e2e/erase_e2etest.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/erase.hpp"

namespace hapax::store {
namespace {

class Erase : public testing::Test {
 protected:
  void erase(const std::string& letters, const std::string& keys) {
    test::erase(database, "found nowhere", letters, keys);
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

// It names no person, and a relay may send the record again.
TEST_F(Erase, OfALettersHeadersWhatARelayWroteAsTheirOriginStays) {
  database.run(
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
      "timestamp_type, header_names, header_values, reason, error, attempts, handler, "
      "handler_version, scope, first_at, ended_at, ended_as) VALUES ('g', 't', 1, 0, 7, 'none', "
      "'{idempotency-key,hapax-origin,sent-by,hapax-origin,hapax-origin,hapax-origin,hapax-origin}'"
      ", "
      "'{k1,g/t.x/1/0/5,Bob Roe,Bob Roe,NULL,gate//payments/0/0/9,g/Bob Roe/1/0/5}', "
      "'rejected', 'no', 1, 'h', '1', 's', now(), now(), 'discarded')");
  EXPECT_THAT(test::erase(database, "Bob Roe"),
              testing::ContainsRegex("dead letters +\\| +1 \\| +0"));
  const std::string left =
      "SELECT array_to_string(header_names, ' '), array_to_string(header_values, ' ') "
      "FROM (SELECT ARRAY(SELECT convert_from(n, 'UTF8') FROM unnest(header_names) n) AS "
      "header_names, ARRAY(SELECT convert_from(v, 'UTF8') FROM unnest(header_values) v) AS "
      "header_values FROM hapax.dead_letters) d";
  EXPECT_EQ(database.value(left), "hapax-origin hapax-origin|g/t.x/1/0/5 gate//payments/0/0/9");
  const std::string again =
      test::erase(database, "payments");  // a topic may be named like a person
  EXPECT_THAT(again, testing::ContainsRegex(" dead letters +\\| +0 \\| +0"));
  EXPECT_THAT(again, testing::ContainsRegex("origins of records, of dead letters +\\| +0 \\| +1"));
  EXPECT_EQ(database.value(left), "hapax-origin hapax-origin|g/t.x/1/0/5 gate//payments/0/0/9");
}

// Else a client that asks for its operation hears that it took effect.
TEST_F(Erase, WhatEndedWithoutAnEffectStaysSo) {
  database.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at, error, result) SELECT key, 's', 'completed', 'g', 't', "
      "1, 0, 7, now() + interval '1 day', error, '{}' FROM (VALUES ('p0', 'given up by ann: Bob'), "
      "('p1', 'refused: Bob'), ('p2', NULL)) AS k (key, error)");
  erase("{}", "{p0,p1,p2}");
  const std::string erased = database.value(
      "SELECT string_agg(coalesce(error, 'none'), ', ' ORDER BY key) FROM hapax.idempotency_keys "
      "WHERE result IS NULL");
  EXPECT_EQ(erased, "given up by an operator (erased), erased, none");
}

TEST_F(Erase, AKeyIsOfOneTenantAndScope) {
  database.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, tenant, status, group_id, topic, "
      "generation, "
      "partition, kafka_offset, expires_at, result) SELECT 'p0', scope, tenant, 'completed', 'g', "
      "'/p', 0, 0, 0, now() + interval '1 day', '{}' FROM (VALUES ('gate', 'ann'), ('gate', "
      "'bob'), "
      "('s', 'ann')) AS k (scope, tenant)");
  EXPECT_THROW(erase("{}", "{p0}"), std::runtime_error);
  EXPECT_THROW(test::erase(database, "found nowhere", "{}", "{p0}", {"tenant=ann"}),
               std::runtime_error);
  test::erase(database, "found nowhere", "{}", "{p0}", {"tenant=ann", "scope=gate"});
  EXPECT_EQ(database.value("SELECT string_agg(scope || ' ' || tenant, ', ' ORDER BY scope, tenant) "
                           "FROM hapax.idempotency_keys WHERE result IS NOT NULL"),
            "gate bob, s ann");
}

// Else its client gets no Location any more.
TEST_F(Erase, TheAnswerOfARequestThatHasNotEndedStays) {
  database.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at, result) VALUES ('p0', 'gate', 'completed', 'g', '/p', "
      "0, 0, 0, now() + interval '100 years', '{\"of\": \"Bob Roe\"}')");
  EXPECT_THAT(test::erase(database, "Bob Roe"),
              testing::ContainsRegex("results of keys +\\| +0 \\| +1"));
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.idempotency_keys WHERE result IS NULL"), 0);
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

// A published record's header may hold one: a message's correlation-id is handed on.
TEST_F(Erase, WorksThoughTheOperatorsLogHoldsANulByte) {
  database.run(
      R"(INSERT INTO hapax.operator_log (who, action, target, why, facts) VALUES
         ('ann', 'outbox skip', 'g receipts 17', 'w',
          '{"records": [{"headers": [["correlation-id", "a\u0000b"]], "payload": "426f6220526f65"}]}'),
         ('ann', 'keys forget', 'k', 'w', '{"before": {"key": "p0", "result": "a\u0000b"}}'))");
  test::erase(database, "Bob Roe", "{}", "{p0}");
  EXPECT_EQ(database.value("SELECT string_agg(facts::text, ' ' ORDER BY id) FROM "
                           "hapax.operator_log"),
            R"({"erased": true} {"erased": true})");
}

// What is compressed, the text does not find.
TEST_F(Erase, TheOperatorsLogHoldsNoSkippedRecordOfALetterOrKeyThatIsNamed) {
  database.run(
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
      "timestamp_type, payload, header_names, header_values, reason, error, attempts, handler, "
      "handler_version, scope, first_at, ended_at, ended_as) VALUES ('g', 't', 1, 0, 7, 'none', "
      "'p', '{}', '{}', 'rejected', 'no', 1, 'h', '1', 's', now(), now(), 'discarded');"
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at) VALUES ('p8', 's', 'completed', 'g', 't', 1, 0, 8, "
      "now() + interval '1 day')");
  for (const char* const offset : {"7", "8", "9"})
    database.run(std::string("INSERT INTO hapax.operator_log (who, action, target, why, facts) "
                             "VALUES ('ann', 'outbox skip', 'g receipts 17', 'w', "
                             "'{\"records\": [{\"group_id\": \"g\", \"source_topic\": \"t\", "
                             "\"source_generation\": 1, \"source_partition\": 0, "
                             "\"source_offset\": ") +
                 offset + R"(, "payload": "1f8b"}]}'))");
  EXPECT_THAT(test::erase(database, "found nowhere", "{1}", "{p8}"),
              testing::ContainsRegex("rows of the operators' log +\\| +2 \\| +0"));
  EXPECT_EQ(database.value("SELECT facts #>> '{records,0,source_offset}' FROM hapax.operator_log "
                           "WHERE facts ->> 'erased' IS NULL"),
            "9");
  EXPECT_THAT(test::erase(database, "found nowhere", "{1}", "{p8}"),
              testing::ContainsRegex("rows of the operators' log +\\| +0 \\| +0"));
}

}  // namespace
}  // namespace hapax::store
