// A release whose handler called to the outside is followed by one whose handler does not.
#include "flow/flow_case.hpp"

namespace hapax::flow {
namespace {

class OpenCall : public FlowCase {
 protected:
  void leave(const std::string& status, const std::string& lease) {
    database.run(
        "INSERT INTO hapax.holders (id, group_id, worker, until) OVERRIDING SYSTEM VALUE VALUES "
        "(1, 'group', 'w', now() + interval '" +
        lease +
        "'); "
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
        "partition, kafka_offset, expires_at, holder, token, calls, called_at, alone, crashes) "
        "VALUES ('k1', 'booking', '" +
        status +
        "', 'group', 'payments', 1, 3, 0, 'infinity', 1, "
        "100, 1, now(), false, 0)");
  }
};

TEST_F(OpenCall, HaltsARouteThatDoesNotCall) {
  leave("started", "-1 second");
  const Outcome outcome = process({});
  EXPECT_EQ(outcome.result, Result::halt_partition);
  EXPECT_EQ(outcome.reason, "open_call");
  EXPECT_EQ(runs, 0);
}

TEST_F(OpenCall, WithItsAnswerHaltsARouteThatDoesNotCall) {
  leave("answered", "1 hour");
  EXPECT_EQ(process({}).reason, "open_call");
  EXPECT_EQ(runs, 0);
}

// As in a rolling deploy: the earlier release ends it, or its lease ends.
TEST_F(OpenCall, IsWaitedForWhileAWorkerOfTheEarlierReleaseCalls) {
  leave("started", "1 hour");
  const Outcome outcome = process({});
  EXPECT_FALSE(is_halt(outcome.result));
  EXPECT_EQ(outcome.reason, "key_started");
  EXPECT_EQ(runs, 0);
}

}  // namespace
}  // namespace hapax::flow
