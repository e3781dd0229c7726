// A lease that outlives its relay, because PostgreSQL's clock went back.
#include "outbox/lease_ahead.hpp"

#include <gmock/gmock.h>

#include "store/worker/checkpoints.hpp"
#include "store/worker/outbox.hpp"
#include "support/database.hpp"

namespace hapax::outbox {
namespace {

using namespace std::chrono_literals;

class LeaseAhead : public testing::Test {
 protected:
  std::optional<store::OutboxLease> take(const std::string& relay) {
    return store::take_outbox_lease(session, "g", relay, store::read_store(session).incarnation,
                                    10s);
  }
  std::string logged() {
    testing::internal::CaptureStderr();
    warn_of_lease_ahead(session, "g", said);
    return testing::internal::GetCapturedStderr();
  }

  test::Database database;
  store::Session session{database.worker()};
  std::string said;
};

TEST_F(LeaseAhead, IsToldOnceAndNotTaken) {
  ASSERT_TRUE(take("relay one"));
  EXPECT_EQ(logged(), "") << "it lasts 10 s";
  database.run("UPDATE hapax.leases SET until = until + interval '1 hour'");
  EXPECT_FALSE(take("relay two")) << "the first may be alive";
  const std::string told = logged();
  EXPECT_THAT(told, testing::HasSubstr("outbox_lease_ahead"));
  EXPECT_THAT(told, testing::HasSubstr("relay one"));
  EXPECT_EQ(logged(), "");
}

}  // namespace
}  // namespace hapax::outbox
