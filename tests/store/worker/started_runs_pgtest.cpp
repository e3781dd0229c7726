// Which runs of a partition count as runs that may have ended because of a message.
#include <gtest/gtest.h>

#include "store/worker/checkpoints.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

class StartedRuns : public testing::Test {
 protected:
  int start(bool at_log_end, bool by_position = false) {
    Taking taking{"group", {"payments", 0}, "w", "spec", "booking", epoch_};
    taking.by_position = by_position;
    epoch_ = take_partition(session_, taking)->epoch;
    AgreedStart agreed{epoch_, 40, "cluster", ""};
    agreed.at_log_end = at_log_end;
    agree_start(session_, taking, agreed);
    return read_checkpoint(session_, "group", taking.partition)->started_runs;
  }

 private:
  test::Database database_;
  Session session_{database_.worker()};
  std::int64_t epoch_ = 0;
};

// No message can have ended a run that began with nothing to do.
TEST_F(StartedRuns, DoNotAddUpIfThereIsNothingToDo) {
  EXPECT_EQ(start(true), 1);
  EXPECT_EQ(start(true), 1);
  EXPECT_EQ(start(false), 2) << "a message that came since may have ended the run before";
  EXPECT_EQ(start(false), 3);
  EXPECT_EQ(start(true), 1);
}

// There the number also tells the first start of a log.
TEST_F(StartedRuns, AddUpByPosition) {
  EXPECT_EQ(start(true, true), 1);
  EXPECT_EQ(start(true, true), 2);
}

}  // namespace
}  // namespace hapax::store
