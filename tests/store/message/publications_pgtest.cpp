// Which dead letters go into the outbox next.
#include "store/message/publications.hpp"

#include <gtest/gtest.h>

#include "outbox/letter_mover.hpp"
#include "outbox/letter_record.hpp"
#include "store/message/replays.hpp"
#include "store/operator/dead_letter_orders.hpp"
#include "store/transaction.hpp"
#include "store/worker/checkpoints.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

using namespace std::chrono_literals;
using Letters = std::vector<std::int64_t>;

class Publications : public testing::Test {
 protected:
  void letters(const std::string& topic, int first, int count, const std::string& payload = "''") {
    database.run(
        "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
        "timestamp_type, payload, header_names, header_values, reason, error, attempts, handler, "
        "handler_version, scope, first_at) SELECT 'g', '" +
        topic + "', 1, 0, n, 'none', " + payload +
        ", '{}', '{}', 'rejected', 'no', 1, 'h', '1', 's', now() FROM generate_series(" +
        std::to_string(first) + ", " + std::to_string(first + count - 1) + ") n");
  }
  Letters next(const std::vector<std::string>& topics) {
    Letters ids;
    const auto moved = move_letters(session, "g", topics, 5s, [&](const UnpublishedLetter& l) {
      ids.push_back(l.id);
      return Published{l.topic + ".dead",
                       l.record_key,
                       {},
                       "[]",
                       "",
                       {"g", l.topic, l.generation, l.partition, l.offset}};
    });
    EXPECT_EQ(moved, ids.size());
    return ids;
  }
  std::size_t unpublished(const std::string& group) {
    return count_unpublished(session, group, {"a", "b"}, {"a.dead", "b.dead"});
  }

  test::Database database;
  Session session{database.worker()};
};

TEST_F(Publications, AreTheOpenOnesOfTheirTopicsByIdOnce) {
  letters("a", 0, 2);  // 1, 2
  letters("b", 0, 2);  // 3, 4
  letters("c", 0, 1);  // 5
  letters("a", 2, 1);  // 6
  database.run(
      "UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'replayed' WHERE id = 2");
  EXPECT_EQ(unpublished("g"), 4U);
  EXPECT_EQ(next({"b", "a"}), (Letters{1, 3, 4, 6}));
  EXPECT_EQ(database.value("SELECT string_agg(concat_ws(' ', topic, source_topic, source_offset), "
                           "', ' ORDER BY id) FROM hapax.outbox"),
            "a.dead a 0, b.dead b 0, b.dead b 1, a.dead a 2");
  EXPECT_EQ(unpublished("g"), 4U) << "those in the outbox";
  EXPECT_EQ(unpublished("other"), 0U);
  database.run("DELETE FROM hapax.outbox WHERE source_topic = 'b'");
  EXPECT_EQ(unpublished("g"), 2U);
  EXPECT_EQ(next({"a", "b"}), Letters{});
}

// Else a consumer of the topic could not tell such a letter from one of a tombstone.
TEST_F(Publications, TellWhatTheyLeaveOutOfAMessageThatWasNotKept) {
  letters("a", 0, 2, "NULL");
  database.run(R"(UPDATE hapax.dead_letters SET other = '{"bytes_kept": false}' WHERE id = 2)");
  move_letters(session, "g", {"a"}, 5s, [](const UnpublishedLetter& letter) {
    return outbox::letter_record(letter, "a.dead", "g", "store");
  });
  EXPECT_EQ(database.value("SELECT headers::json->-1 FROM hapax.outbox ORDER BY id"),
            R"(["hapax-left-out",null])"
            "\n"
            R"(["hapax-left-out","payload, key, headers"])");
}

// It has a smaller id than one that is published by then.
TEST_F(Publications, PassOverNoneThatCommitsLate) {
  letters("a", 0, 1);
  database.run("UPDATE hapax.dead_letters SET topic = 'elsewhere'");  // as if not committed yet
  letters("a", 1, 1);
  EXPECT_EQ(next({"a"}), Letters{2});
  database.run("UPDATE hapax.dead_letters SET topic = 'a' WHERE topic = 'elsewhere'");
  EXPECT_EQ(next({"a"}), Letters{1});
}

TEST_F(Publications, AreBoundedByNumberAndByBytesButOneComesInAnyCase) {
  letters("a", 0, 1, "convert_to(repeat('x', 9 << 20), 'UTF8')");
  letters("a", 1, 3, "convert_to(repeat('x', 3 << 20), 'UTF8')");
  letters("a", 4, 120);
  EXPECT_EQ(next({"a"}), Letters{1});
  EXPECT_EQ(next({"a"}), (Letters{2, 3, 4}));
  EXPECT_EQ(next({"a"}).size(), kMostLetters);
}

// PostgreSQL refuses letter 3. It once refused all that were read with it, each second.
TEST_F(Publications, ThatAreRefusedHoldUpOnlyLaterOnesOfTheirTopic) {
  letters("a", 0, 6);  // 1 to 6
  letters("b", 0, 2);  // 7, 8
  database.run(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN "
      "RAISE EXCEPTION 'no'; END$$; CREATE TRIGGER refuse BEFORE INSERT ON hapax.outbox FOR EACH "
      "ROW WHEN (new.source_topic = 'a' AND new.source_offset = 2) EXECUTE FUNCTION refuse()");
  outbox::LetterMover mover("g", {{"a", "a.dead"}, {"b", "b.dead"}});
  const auto look = [&] {
    mover.look_again();
    mover.move(session, 4s, "store", [](const std::string&) { return true; });
    return database.value(
        "SELECT string_agg(source_topic || source_offset, ' ' ORDER BY id) FROM hapax.outbox");
  };
  EXPECT_EQ(look(), "null");
  EXPECT_EQ(look(), "a0 b0");
  for (int i = 0; i < 3; ++i) look();
  EXPECT_EQ(look(), "a0 b0 b1 a1");
  letters("b", 2, 1);
  EXPECT_EQ(look(), "a0 b0 b1 a1 b2");
  database.run("DROP TRIGGER refuse ON hapax.outbox");
  for (int i = 0; i < 3; ++i) look();
  EXPECT_EQ(look(), "a0 b0 b1 a1 b2 a2 a3 a4 a5");
}

// The handler of its replay may run now, without a lock on the letter.
TEST_F(Publications, LeaveOutALetterWhoseReplayHasNotEnded) {
  letters("a", 0, 2);
  Session owner(database.owner());
  want_replays(owner, {"g", "ann", "fixed"}, {1}, {});
  EXPECT_EQ(next({"a"}), Letters{2});
  Session worker(database.worker());
  const auto claimed = claim_replay(worker, "g", {"a"}, "w", 10s);
  ASSERT_TRUE(claimed);
  EXPECT_EQ(next({"a"}), Letters{}) << "it is claimed";
  write_note(worker, *claimed, {.what = ReplayNote::What::failed, .text = "no"}, "w", "g");
  EXPECT_EQ(next({"a"}), Letters{1}) << "its replay has failed";
}

// An operator discards it, for example.
TEST_F(Publications, LeaveOutALetterThatIsLocked) {
  letters("a", 0, 2);
  Session owner(database.owner());
  Transaction discarding(owner);
  discarding.run("SELECT FROM hapax.dead_letters WHERE id = 1 FOR UPDATE");
  EXPECT_EQ(next({"a"}), Letters{2});
  discarding.rollback();
  EXPECT_EQ(next({"a"}), Letters{1});
}

// Two would mix up their order.
TEST_F(Publications, AreMovedByOneProcessAtATime) {
  letters("a", 0, 2);
  Session other(database.worker());
  Transaction moving(other);
  moving.run("SELECT pg_advisory_xact_lock(hashtextextended('hapax letters g', 0))");
  EXPECT_EQ(next({"a"}), Letters{});
  moving.rollback();
  EXPECT_EQ(next({"a"}), (Letters{1, 2}));
}

// A message may be nothing but headers, or a key.
TEST_F(Publications, AreBoundedByTheBytesOfKeysAndHeaders) {
  letters("a", 0, 8);
  database.run(
      "UPDATE hapax.dead_letters SET message_key = convert_to(repeat('k', 3 << 20), 'UTF8') "
      "WHERE id <= 4");
  database.run(
      "UPDATE hapax.dead_letters SET header_names = ARRAY[convert_to(repeat('n', 1 << 20), "
      "'UTF8'), ''], header_values = ARRAY[convert_to(repeat('v', 2 << 20), 'UTF8'), NULL] "
      "WHERE id > 4");
  EXPECT_EQ(next({"a"}), (Letters{1, 2, 3}));
  EXPECT_EQ(next({"a"}), (Letters{4, 5, 6}));
  EXPECT_EQ(next({"a"}), (Letters{7, 8}));
}

}  // namespace
}  // namespace hapax::store
