// Which partitions the poll thread takes messages of.
#include "worker/partitions.hpp"

#include "poll_ground.hpp"

namespace hapax::worker {
namespace {

using PartitionsTest = PollGround;

// Before its start is agreed it has no watermark: what was fetched ahead must not be received.
TEST_F(PartitionsTest, RunOnlyFromTheirAgreedStartToTheirEnd) {
  EXPECT_EQ(find_running(partitions, id(0)), nullptr);
  const auto partition = start(0);
  EXPECT_EQ(find_running(partitions, id(0)), partition);
  partition->polling.started = false;
  EXPECT_EQ(find_running(partitions, id(0)), nullptr);
  partition->polling.started = true;
  partition->end();
  EXPECT_EQ(find_running(partitions, id(0)), nullptr);
}

// The checkpointer asks before its COMMIT, and calls go on meanwhile.
TEST_F(PartitionsTest, KeepTheNewestPositionOfOneRunOfPostgres) {
  const auto partition = start(0);
  partition->saw({{1, 0x200}, "run"});
  partition->saw({{1, 0x100}, "run"});
  EXPECT_EQ(partition->seen_wal(), (SeenWal{{1, 0x200}, "run"}));
  partition->saw({{1, 0x100}, "next run"});
  EXPECT_EQ(partition->seen_wal(), (SeenWal{{1, 0x100}, "next run"}));
}

}  // namespace
}  // namespace hapax::worker
