// Halts as workers record them.
#include <gtest/gtest.h>

#include "store/worker/checkpoints.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

class Halts : public testing::Test {
 protected:
  // Another worker takes the partition; the epoch that it gets.
  std::int64_t take() {
    const auto row = read_checkpoint(session, "group", {"payments", 3});
    const Taking taking{"group", {"payments", 3}, "a", "spec", "booking", row ? row->epoch : 0};
    return take_partition(session, taking)->epoch;
  }
  void open(const Halt& one) { open_halt(session, "group", one); }
  std::vector<Halt> halts() { return read_halts(session, "group"); }

  test::Database database;
  Session session{database.worker()};
  Halt halt{0, "payments", 3, false, 1, 7, "statement_refused", "the facts", {}, "worker"};
};

TEST_F(Halts, KeepTheirFirstReasonAndOneOfEachPlace) {
  open(halt);
  Halt second = halt;
  second.reason = "another";
  open(second);
  second.whole_route = true;
  open(second);
  const auto found = halts();
  ASSERT_EQ(found.size(), 2U);
  const Halt& first = found[found[0].whole_route ? 1 : 0];
  EXPECT_EQ(first.reason, "statement_refused");
  EXPECT_EQ(first.offset, 7);
  EXPECT_EQ(read_halts(session, "other").size(), 0U);
  database.run("UPDATE hapax.halts SET ended_at = now()");
  open(halt);
  EXPECT_EQ(halts().size(), 1U);
}

// A worker that was frozen wakes, and records what it met before.
TEST_F(Halts, AreNotRecordedIfAnotherWorkerHasThePartition) {
  halt.whole_route = true;
  halt.epoch = take();
  take();
  open(halt);
  EXPECT_EQ(halts().size(), 0U);
  halt.reason = "handler_ended_transaction";  // a part may have been committed
  open(halt);
  EXPECT_EQ(halts().size(), 1U);
}

TEST_F(Halts, AreRecordedOfThePartitionsLastOwner) {
  halt.epoch = take();
  open(halt);
  EXPECT_EQ(halts().size(), 1U);
}

}  // namespace
}  // namespace hapax::store
