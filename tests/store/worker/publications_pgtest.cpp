// Which dead letters are published next.
#include "store/worker/publications.hpp"

#include <gtest/gtest.h>

#include "store/operator/migrate.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

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
  std::vector<std::int64_t> next(const std::vector<std::string>& topics) {
    std::vector<std::int64_t> ids;
    for (const UnpublishedLetter& letter : read_unpublished(session, "g", topics))
      ids.push_back(letter.id);
    return ids;
  }

  test::Database database;
  Session session{database.worker()};
};

TEST_F(Publications, AreTheOpenOnesOfTheirTopicsByIdUntilTheyAreMarked) {
  letters("a", 0, 2);  // 1, 2
  letters("b", 0, 2);  // 3, 4
  letters("c", 0, 1);  // 5
  letters("a", 2, 1);  // 6
  database.run(
      "UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'replayed' WHERE id = 2");
  EXPECT_EQ(next({"b", "a"}), (std::vector<std::int64_t>{1, 3, 4, 6}));
  EXPECT_EQ(count_unpublished(session, "g", {"a", "b"}), 4U);
  EXPECT_EQ(count_unpublished(session, "other", {"a", "b"}), 0U);
  mark_published(session, {1, 4});
  EXPECT_EQ(next({"a", "b"}), (std::vector<std::int64_t>{3, 6}));
}

// It has a smaller id than one that is published by then.
TEST_F(Publications, PassOverNoneThatCommitsLate) {
  letters("a", 0, 1);
  database.run("UPDATE hapax.dead_letters SET topic = 'elsewhere'");  // as if not committed yet
  letters("a", 1, 1);
  mark_published(session, next({"a"}));
  database.run("UPDATE hapax.dead_letters SET topic = 'a' WHERE topic = 'elsewhere'");
  EXPECT_EQ(next({"a"}), std::vector<std::int64_t>{1});
}

TEST_F(Publications, AreBoundedByNumberAndByBytesButOneComesInAnyCase) {
  letters("a", 0, 1, "convert_to(repeat('x', 9 << 20), 'UTF8')");
  letters("a", 1, 3, "convert_to(repeat('x', 3 << 20), 'UTF8')");
  letters("a", 4, 120);
  EXPECT_EQ(next({"a"}), std::vector<std::int64_t>{1});
  mark_published(session, {1});
  EXPECT_EQ(next({"a"}), (std::vector<std::int64_t>{2, 3, 4}));
  mark_published(session, {2, 3, 4});
  EXPECT_EQ(next({"a"}).size(), kMostLetters);
}

TEST_F(Publications, AreNotThereOnTheSchemaBefore) {
  EXPECT_TRUE(has_publications(session));
  Session owner(database.owner());
  migrate_down(owner, 5);
  EXPECT_FALSE(has_publications(session));
}

}  // namespace
}  // namespace hapax::store
