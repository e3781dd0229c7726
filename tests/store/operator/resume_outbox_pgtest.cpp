// What the decisions about a copied database do to what the relay has halted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/resumption.hpp"
#include "store/operator/resume.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

class ResumeOutbox : public testing::Test {
 protected:
  ResumeOutbox() {
    database.run(
        "UPDATE hapax.store SET database_oid = 1; INSERT INTO hapax.outbox_halts (group_id, topic, "
        "row_id, record_key, reason, detail, halted_by) VALUES ('g', 'r', 1, 'k', "
        "'record_refused', "
        "'no', 'w'), ('other', 'r', NULL, NULL, 'topic_refused', 'no', 'w')");
  }
  // What an operator reads of it.
  std::string decide(const std::string& decision) {
    Session owner(database.owner());
    std::string told;
    for (const std::string& line :
         app::resumed_lines(resume(owner, {"g", "", {}, decision, "ann", "restored", "", false})))
      told += line + "\n";
    return told;
  }
  std::string halts() {
    return database.value("SELECT decision, ended_by, why FROM hapax.outbox_halts ORDER BY id");
  }

  test::Database database;
};

TEST_F(ResumeOutbox, CopyEndsItsHaltsWhoseRecordsAreTheOriginals) {
  EXPECT_THAT(decide("copy"), testing::HasSubstr("ended_outbox_halts  2"));
  const std::string ended = "skip|ann|the database became a copy: restored";
  EXPECT_EQ(halts(), ended + "\n" + ended);
}

TEST_F(ResumeOutbox, MovedLeavesItsHaltsAndTellsWhatToType) {
  EXPECT_THAT(decide("moved"), testing::HasSubstr("open_outbox_halts  2, which stand as before: "
                                                  "`hapax outbox list`"));
  EXPECT_EQ(halts(), "null|null|null\nnull|null|null");
}

}  // namespace
}  // namespace hapax::store
