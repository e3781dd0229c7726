// A worker joins its group again if the group has to assign again, and logs a slow group once.
#include "worker/group_membership.hpp"

#include "observe/log.hpp"
#include "poll_ground.hpp"

namespace hapax::worker {
namespace {

struct GroupMembershipTest : PollGround {
  GroupMembership membership{consumer, clock()};

  // What tell_if_slow() logs now.
  std::string told() {
    testing::internal::CaptureStderr();
    membership.tell_if_slow();
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(GroupMembershipTest, JoinsAgainOnceForATopicWithoutARouteOrAPartitionWithoutAnOwner) {
  membership.turn();
  EXPECT_EQ(consumer.rejoined, 0);
  membership.has_no_route({"refunds", 0});
  membership.has_no_owner(id(1));
  membership.turn();
  membership.turn();
  EXPECT_EQ(consumer.rejoined, 1);
}

TEST_F(GroupMembershipTest, ARefusedJoinIsLeftToTheNextRebalance) {
  consumer.refuses_rejoin = true;
  membership.has_no_owner(id(0));
  EXPECT_NO_THROW(membership.turn());
  membership.turn();
  EXPECT_EQ(consumer.rejoined, 1);
}

TEST_F(GroupMembershipTest, ASlowGroupIsLoggedOnceAfterFiveSeconds) {
  membership.waits();
  now += milliseconds(4999);
  EXPECT_EQ(told(), "");
  now += milliseconds(1);
  EXPECT_NE(told(), "");
  EXPECT_EQ(told(), "");
}

TEST_F(GroupMembershipTest, AGroupThatHasAssignedIsNotSlow) {
  membership.waits();
  membership.assigned();
  now += std::chrono::minutes(1);
  EXPECT_EQ(told(), "");
}

}  // namespace
}  // namespace hapax::worker
