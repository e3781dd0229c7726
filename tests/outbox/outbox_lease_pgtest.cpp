// When a relay may take over from one that has gone: sql/worker/take_outbox_lease.sql.
#include "store/worker/outbox_lease.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <type_traits>

#include "sandbox/proxy.hpp"
#include "store/worker/checkpoints.hpp"
#include "store/worker/outbox.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

// std::chrono::steady_clock stands still while the machine is suspended. A relay would then go on
// sending, behind the records of one that has taken over.
static_assert(std::is_same_v<decltype(OutboxRead::renewed_at), sync::SleeplessClock::time_point>);

using namespace std::chrono_literals;

class LeaseOfARelay : public testing::Test {
 protected:
  LeaseOfARelay() { show_relay(*relay, holder); }

  // As if the relay had renewed it so long ago. A lease of 10 s.
  void hold(int seconds_ago, const std::string& by) {
    ASSERT_TRUE(take_outbox_lease(*relay, "g", by, "", 10s));
    database.run("UPDATE hapax.leases SET until = clock_timestamp() + interval '" +
                 std::to_string(10 - seconds_ago) + " s'");
  }
  bool is_free() { return take_outbox_lease(other, "g", "other", "", 10s).has_value(); }
  // PostgreSQL ends a session a moment after its client has gone.
  void end(std::optional<Session>& session, const std::string& left) {
    session.reset();
    database.wait_until(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = "
        "(SELECT oid FROM pg_database WHERE datname = current_database())",
        left);
  }

  test::Database database;
  const std::string holder = outbox_holder("one", 10s);
  std::optional<Session> relay{std::in_place, database.worker()};
  Session other{database.worker()};
};

TEST_F(LeaseOfARelay, IsNotFreeWhileItsSessionLives) {
  hold(9, holder);
  EXPECT_FALSE(is_free());
}

TEST_F(LeaseOfARelay, IsFreeOnceItsSessionHasEndedForAWhile) {
  hold(3, holder);
  end(relay, "0");
  EXPECT_TRUE(is_free());
}

// It may have lost its connection only. Then it comes back, and renews the lease at once.
TEST_F(LeaseOfARelay, IsNotFreeWhenItsSessionHasJustEnded) {
  hold(1, holder);
  end(relay, "0");
  EXPECT_FALSE(is_free());
}

TEST_F(LeaseOfARelay, IsNotFreeOnceTheRelayIsBackInAnotherSession) {
  hold(9, holder);
  std::optional<Session> next(std::in_place, database.worker());
  show_relay(*next, holder);  // while PostgreSQL still has the session before
  end(relay, "1");
  EXPECT_FALSE(is_free());
}

// The other relay runs with or without transactions, and this one the other way.
TEST_F(LeaseOfARelay, IsNotFreeWhenItsSessionHasJustEndedThoughTheOthersLeasesLastLonger) {
  hold(1, holder);
  end(relay, "0");
  EXPECT_FALSE(take_outbox_lease(other, "g", "other", "", 60s));
}

// It shows no session, alive or not.
TEST_F(LeaseOfARelay, IsNotFreeBeforeItsEndIfTheRelayIsOfAnOlderRelease) {
  hold(9, "one 12345");
  end(relay, "0");
  EXPECT_FALSE(is_free());
}

TEST_F(LeaseOfARelay, IsFreeAtItsEndThoughASessionLives) {
  hold(10, holder);
  EXPECT_TRUE(is_free());
}

// Its question locks the lease, though it does not get it.
TEST_F(LeaseOfARelay, IsRenewedThoughARelayStandsStillThatAsksForIt) {
  const auto time = 6s;
  const std::string incarnation = read_store(other).incarnation;
  const OutboxLease mine = *take_outbox_lease(other, "g", holder, incarnation, time);
  std::promise<void> stands, goes_on;
  const auto goes = goes_on.get_future().share();
  std::atomic<bool> armed = false;
  ConnectOptions direct = database.worker();
  sandbox::Proxy proxy({"127.0.0.1", std::to_string(test::postgres().port())}, {},
                       [&](int, sandbox::Proxy::From from, const std::string& text) {
                         if (from == sandbox::Proxy::From::client &&
                             text.ends_with(std::string_view("COMMIT", 7)) &&
                             armed.exchange(false)) {
                           stands.set_value();
                           goes.wait();
                         }
                         return sandbox::Proxy::Then::forward;
                       });
  Session standby(test::through_port(direct, proxy.port()));
  armed = true;
  auto asking = std::async(
      [&] { return take_outbox_lease(standby, "g", "two", incarnation, time).has_value(); });
  stands.get_future().wait();
  OutboxStep step;
  step.lease = time;
  const auto began = sync::SleeplessClock::now();
  EXPECT_NO_THROW(EXPECT_TRUE(step_outbox(other, mine, step)));
  EXPECT_LT(sync::SleeplessClock::now() - began, time / 2);
  goes_on.set_value();
  EXPECT_THROW(asking.get(), DatabaseError);
}

}  // namespace
}  // namespace hapax::store
