// What the decisions about a copied database do to what the relay has halted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/resumption.hpp"
#include "store/operator/resume.hpp"
#include "store/worker/checkpoints.hpp"
#include "store/worker/outbox.hpp"
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

// The relay reached the original before, and the copy is on the same server.
TEST_F(ResumeOutbox, CopyFencesARelayThatHadTheLeaseWhenItWasMade) {
  Session relay(database.worker());
  const std::string incarnation = read_store(relay).incarnation;
  const auto lease = take_outbox_lease(relay, "g", "w", incarnation, std::chrono::seconds(60));
  const OutboxStep step{{{"r", 0}}, {}, 10, 1000, std::chrono::seconds(60), LeaseClock::now()};
  EXPECT_FALSE(step_outbox(relay, *lease, step));
  decide("copy");
  EXPECT_FALSE(step_outbox(relay, *lease, step));
}

TEST_F(ResumeOutbox, MovedLeavesItsHaltsAndTellsWhatToType) {
  EXPECT_THAT(decide("moved"), testing::HasSubstr("open_outbox_halts  2, which stand as before: "
                                                  "`hapax outbox list`"));
  EXPECT_EQ(halts(), "null|null|null\nnull|null|null");
}

}  // namespace
}  // namespace hapax::store
