// Routes with `key: "position"`: what outlives a checkpoint, a rewind, or the group itself.
#include "flow/position_case.hpp"
#include "store/operator/operator.hpp"

namespace hapax::flow {
namespace {

using test::CuttingProxy;

class PositionMemory : public PositionCase {
 protected:
  // A checkpoint has passed all, and the partition was rewound since.
  void pass_and_rewind() { database.run("DELETE FROM hapax.positions"); }
};

// Its route refuses tombstones, and the one of the worker that took the partition handles them.
TEST_F(PositionMemory, ATombstoneIsNoDeadLetterOfAWorkerThatLostThePartition) {
  const auto mine = take("a");
  const auto theirs = take("b");
  const Sent tombstone{.payload = std::nullopt, .offset = 7};
  EXPECT_EQ(process(tombstone, book, {.epoch = mine.epoch}).reason, "fenced");
  EXPECT_EQ(count("hapax.dead_letters"), 0);
  EXPECT_EQ(process(tombstone, book, {.epoch = theirs.epoch}).reason, "tombstone");
  EXPECT_EQ(count("hapax.dead_letters"), 1);
  EXPECT_EQ(rows(), "7");
  EXPECT_EQ(process(tombstone, book, {.epoch = theirs.epoch, .in_doubt = true}).reason,
            "redelivered");
}

// It was committed in doubt, and counted as a failed run; then the process died. No key tells.
TEST_F(PositionMemory, AFailedRunThatWasJumpedOverIsNoReasonToRunAMessageBelowTheHighest) {
  CuttingProxy proxy(test::postgres().port());
  store::ConnectOptions through = test::through_port(options, proxy.port());
  Processor processor([&] { return store::Session(through); }, 1);
  proxy.cut_next(";COMMIT", CuttingProxy::Cut::after_answer);
  const Outcome lost = process_on(processor, {.offset = 4}, book, {.outages = kMaxOutages - 1});
  EXPECT_EQ(lost.result, Result::retry);
  EXPECT_EQ(count("hapax.attempts"), 1);
  database.run(
      "INSERT INTO hapax.position_changes (group_id, topic, partition, generation, from_offset, "
      "to_offset, cause, who, why) VALUES ('group', 'payments', 3, 1, 4, 9, 'skip', 'anna', '')");
  pass_and_rewind();
  EXPECT_EQ(process({.offset = 4}, book, {.guard_below = 9}).reason, "unknown_below_highest");
  EXPECT_EQ(effects(), "k1=10");
}

// It stood still while its group was forgotten, and a group came under the same name.
TEST_F(PositionMemory, AWorkerOfAGroupThatWasForgottenRunsNothingOfItsSuccessor) {
  const auto mine = take("a");
  store::Session owner(database.owner());
  const store::ForgottenGroup gone{"group", {}, "anna", "gone"};
  store::forget_group(owner, gone, store::read_group(owner, gone));
  const auto theirs = take("b");
  EXPECT_GT(theirs.epoch, mine.epoch);
  EXPECT_EQ(process({.offset = 1}, book, {.epoch = mine.epoch}).reason, "fenced");
  EXPECT_EQ(process({.offset = 1}, book, {.epoch = theirs.epoch}).result, Result::completed);
}

}  // namespace
}  // namespace hapax::flow
