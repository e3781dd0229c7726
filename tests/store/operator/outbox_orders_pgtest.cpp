// What operators see of the outbox and decide about halted records, as the operator's role.
#include "store/operator/outbox_orders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/transaction.hpp"
#include "store/worker/outbox.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

using testing::HasSubstr;

class OutboxOrders : public testing::Test {
 protected:
  OutboxOrders() { session.emplace(database.make_operator()); }

  // Record n of a topic has key k<n> and comes from payments/3/<n>.
  void records(const std::string& topic, int from, int to, const std::string& group = "g") {
    database.run(
        "INSERT INTO hapax.outbox (group_id, topic, record_key, payload, headers, "
        "idempotency_key, source_topic, source_generation, source_partition, source_offset, "
        "created_at) SELECT '" +
        group + "', '" + topic +
        "', convert_to('k' || n, 'UTF8'), '\\xff00', '[[\"kind\",{\"hex\":\"ff\"}]]', 'key ' || n, "
        "'payments', 1, 3, n, now() - interval '1 minute' FROM generate_series(" +
        std::to_string(from) + ", " + std::to_string(to) + ") n ORDER BY n");
  }
  void halt(const std::string& topic, const std::string& row, const std::string& key = "NULL",
            const std::string& group = "g") {
    database.run(
        "INSERT INTO hapax.outbox_halts (group_id, topic, row_id, record_key, reason, "
        "detail, halted_by) VALUES ('" +
        group + "', '" + topic + "', " + row + ", " + key + ", '" +
        (row == "NULL" ? "topic_refused" : "record_refused") + "', 'no', 'w')");
  }
  OutboxDecided skip(const std::vector<std::int64_t>& ids, bool dry_run = false) {
    return skip_outbox(*session, {"g", "ann", "sent by hand", dry_run}, ids);
  }
  OutboxDecided retry(const std::string& which, bool dry_run = false) {
    return retry_outbox(*session, {"g", "ann", "fixed", dry_run}, which);
  }
  std::string refusal(const std::vector<std::int64_t>& ids) {
    try {
      skip(ids);
    } catch (const Refused& refused) {
      return refused.what();
    }
    return "";
  }
  std::string halts() {
    return database.value(
        "SELECT topic, row_id, ended_by, why, decision FROM hapax.outbox_halts ORDER BY id");
  }
  int count(const std::string& table) {
    return database.count("SELECT count(*) FROM hapax." + table);
  }

  test::Database database;
  std::optional<Session> session;
};

TEST_F(OutboxOrders, SkipRemovesAHaltedRecordAndTheLogKeepsItWhole) {
  records("receipts", 1, 3);
  halt("receipts", "2", "'k2'");
  const OutboxDecided decided = skip({2});
  EXPECT_EQ(decided.records.at(0).at("idempotency_key"), "key 2");
  EXPECT_EQ(decided.halts.at(0).at("record"), 2);
  EXPECT_EQ(database.value("SELECT string_agg(id::text, ' ' ORDER BY id) FROM hapax.outbox"),
            "1 3");
  EXPECT_EQ(halts(), "receipts|2|ann|sent by hand|skip");
  EXPECT_EQ(database.value("SELECT who, action, target, why, facts->'records'->0->>'payload', "
                           "facts->'records'->0->>'record_key', facts->'records'->0->>'headers', "
                           "facts->'records'->0->>'idempotency_key', facts->'halts'->0->>'reason' "
                           "FROM hapax.operator_log"),
            "ann|outbox skip|g receipts 2|sent by hand|ff00|6b32|[[\"kind\",{\"hex\":\"ff\"}]]|"
            "key 2|record_refused");
}

// The relay may have it in hand, and Kafka may have it already.
TEST_F(OutboxOrders, SkipRefusesARecordThatIsNotHaltedAndThenSkipsNone) {
  records("receipts", 1, 3);
  halt("receipts", "2", "'k2'");
  EXPECT_THAT(refusal({2, 1}), HasSubstr("record 1 of receipts is not halted"));
  EXPECT_THAT(refusal({4}), HasSubstr("group g has no unsent record 4"));
  EXPECT_EQ(count("outbox"), 3);
  EXPECT_EQ(halts(), "receipts|2|null|null|null");
  EXPECT_EQ(count("operator_log"), 0);
}

TEST_F(OutboxOrders, SkipTakesWhatWaitsBehindAHaltedKeyOrTopicAndLeavesThatHaltOpen) {
  records("receipts", 1, 2);
  database.run("UPDATE hapax.outbox SET record_key = 'k1' WHERE id = 2");
  halt("receipts", "1", "'k1'");
  records("audit", 3, 4);
  halt("audit", "NULL");
  EXPECT_EQ(skip({2, 3}).records.size(), 2U);
  EXPECT_EQ(halts(), "receipts|1|null|null|null\naudit|null|null|null|null");
  EXPECT_EQ(database.value("SELECT string_agg(id::text, ' ' ORDER BY id) FROM hapax.outbox"),
            "1 4");
}

TEST_F(OutboxOrders, SkipTakesAHaltedRecordAndWhatWaitsBehindItAtOnce) {
  records("receipts", 1, 2);
  database.run("UPDATE hapax.outbox SET record_key = 'k1' WHERE id = 2");
  halt("receipts", "1", "'k1'");
  EXPECT_EQ(skip({1, 2}).records.size(), 2U);
  EXPECT_EQ(halts(), "receipts|1|ann|sent by hand|skip");
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.outbox"), "0");
}

TEST_F(OutboxOrders, SkipEndsTheHaltOfARecordThatIsGone) {
  halt("receipts", "2", "'k2'");
  const OutboxDecided decided = skip({2});
  EXPECT_EQ(decided.records.size(), 0U);
  EXPECT_EQ(decided.halts.size(), 1U);
  EXPECT_EQ(halts(), "receipts|2|ann|sent by hand|skip");
}

TEST_F(OutboxOrders, RetryEndsTheHaltsOfATopicOrOfOneRecordAndOfNoOtherGroup) {
  halt("receipts", "1", "'k1'");
  halt("receipts", "2", "'k2'");
  halt("receipts", "NULL");
  halt("receipts", "2", "'k2'", "other");
  EXPECT_EQ(retry("2").halts.size(), 1U);
  EXPECT_EQ(retry("2").halts.size(), 0U);
  EXPECT_EQ(retry("receipts").halts.size(), 2U);
  EXPECT_EQ(halts(),
            "receipts|1|ann|fixed|retry\nreceipts|2|ann|fixed|retry\n"
            "receipts|null|ann|fixed|retry\nreceipts|2|null|null|null");
  EXPECT_EQ(database.value("SELECT string_agg(target, ', ' ORDER BY id) FROM hapax.operator_log"),
            "g 2, g receipts");
}

TEST_F(OutboxOrders, RetryOfANumberMeansTheHaltedRecordBeforeATopicOfThatName) {
  halt("17", "NULL");
  halt("receipts", "17", "'k1'");
  EXPECT_EQ(retry("17").halts.size(), 1U);
  EXPECT_EQ(halts(), "17|null|null|null|null\nreceipts|17|ann|fixed|retry");
  EXPECT_EQ(retry("17").halts.size(), 1U);
  EXPECT_EQ(halts(), "17|null|ann|fixed|retry\nreceipts|17|ann|fixed|retry");
}

TEST_F(OutboxOrders, ADryRunChangesNothing) {
  records("receipts", 1, 1);
  halt("receipts", "1", "'k1'");
  EXPECT_EQ(skip({1}, true).records.size(), 1U);
  EXPECT_EQ(retry("1", true).halts.size(), 1U);
  EXPECT_EQ(halts(), "receipts|1|null|null|null");
  EXPECT_EQ(count("outbox"), 1);
  EXPECT_EQ(count("operator_log"), 0);
}

TEST_F(OutboxOrders, TheWorkersRoleMayDecideNothing) {
  records("receipts", 1, 1);
  halt("receipts", "1", "'k1'");
  session.emplace(database.worker());
  EXPECT_THROW(skip({1}), DatabaseError);
  EXPECT_THROW(retry("1"), DatabaseError);
  EXPECT_EQ(halts(), "receipts|1|null|null|null");
}

// As the relay does, which reads what is halted again once the halt has ended.
TEST_F(OutboxOrders, AreFollowedByTheRelaysReading) {
  records("receipts", 1, 2);
  halt("receipts", "1", "'k1'");
  Session worker(database.worker());
  EXPECT_TRUE(peek_outbox(worker, "g", {{"receipts", 0}}));
  EXPECT_FALSE(peek_outbox(worker, "g", {{"receipts", 2}}));
  skip({1});
  EXPECT_EQ(read_outbox_halts(worker, "g").size(), 0U);
  halt("receipts", "2", "'k2'");
  EXPECT_FALSE(peek_outbox(worker, "g", {{"receipts", 0}}));
  retry("receipts");
  EXPECT_TRUE(peek_outbox(worker, "g", {{"receipts", 0}}));
}

TEST_F(OutboxOrders, AreMadeOnWhatInspectShows) {
  records("receipts", 1, 3);
  records("audit", 4, 4);
  records("receipts", 5, 5, "other");
  halt("receipts", "2", "'k2'");
  session.emplace(database.worker());
  const Json state = read_outbox_state(*session, "g");
  ASSERT_EQ(state.size(), 2U);
  EXPECT_EQ(state[0].at("topic"), "audit");
  EXPECT_EQ(state[1].at("unsent"), 3);
  EXPECT_EQ(state[1].at("oldest"), 1);
  EXPECT_GE(state[1].at("oldest_seconds"), 60);
  const Json listed = list_outbox(*session, "g", "receipts", 1, 10);
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed[0].at("held"), "record");
  EXPECT_EQ(listed[1].at("held"), nullptr);
  EXPECT_EQ(listed[1].at("payload_bytes"), 2);
  const Json record = read_outbox_record(*session, "g", 3);
  EXPECT_EQ(record.at("payload"), "ff00");
  EXPECT_EQ(record.at("source_offset"), 3);
  EXPECT_TRUE(read_outbox_record(*session, "g", 5).is_null());
  EXPECT_EQ(read_unsent_of(*session, {"g", "payments", 1, 3, 2}, 10).at(0).at("id"), 2);
  EXPECT_EQ(read_unsent_of(*session, {"g", "payments", 2, 3, 2}, 10).size(), 0U);
}

}  // namespace
}  // namespace hapax::store
