// PostgreSQL keeps its connections and does not answer: its machine is frozen, or its synchronous
// standby is gone.
#include <future>

#include "gate/gate_case.hpp"
#include "support/stands_still.hpp"

namespace hapax::gate {
namespace {

class SilentPostgres : public GateCase {
 protected:
  // A lane may still have the key of a request that was given up.
  SilentPostgres() { config.gate.wait = kGatePatience; }

  std::future<Reply> begin_post(const std::string& key) {
    return std::async(std::launch::async, [this, key] { return post(key); });
  }

  void await_away() {
    await_metric(gate(), "hapax_postgres_up", "0");
    EXPECT_FALSE(gate().status.ready().ok);
  }
  void await_back() {
    await_metric(gate(), "hapax_postgres_up", "1");
    EXPECT_TRUE(gate().status.ready().ok);
  }

  std::string booked() {
    return database.value(
        "SELECT string_agg(key || ':' || n, ' ' ORDER BY key) FROM (SELECT key, count(*) AS n FROM "
        "effects GROUP BY key) AS booked");
  }
};

void expect_in_doubt(const Reply& reply) {
  EXPECT_EQ(reply.status, 503);
  EXPECT_NE(reply.header("retry-after"), "");
  EXPECT_NE(reply.body.find("It is not known whether it took effect"), std::string::npos)
      << reply.body;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

TEST_F(SilentPostgres, IsToldOnceAndNoRequestWaitsForIt) {
  config.gate.lanes = 2;
  EXPECT_EQ(post("k0").status, 201);
  testing::internal::CaptureStderr();
  {
    std::vector<std::future<Reply>> waiting;  // some on a lane, some in the queue
    const test::StandsStill frozen(database);
    for (const char* key : {"k1", "k2", "k3", "k4"}) waiting.push_back(begin_post(key));
    await_away();
    for (auto& reply : waiting) expect_in_doubt(reply.get());
    EXPECT_EQ(post("k5").status, 503);
  }
  await_back();
  for (const char* key : {"k1", "k2", "k3", "k4", "k5"}) EXPECT_EQ(post(key).status, 201) << key;
  EXPECT_EQ(booked(), "k0:1 k1:1 k2:1 k3:1 k4:1 k5:1");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(log, "postgres_down"), 1U) << log;
  EXPECT_EQ(count(log, "postgres_up"), 1U) << log;
}

TEST_F(SilentPostgres, IsNoticedThoughNoRequestComes) {
  EXPECT_EQ(post("k0").status, 201);
  {
    const test::StandsStill frozen(database);
    await_away();
  }
  await_back();
}

// COMMITs wait for a standby that is not there.
class LostStandby {
 public:
  explicit LostStandby(test::Database& database) : database_(database) {
    set("SET synchronous_standby_names TO 'gone'");
  }
  ~LostStandby() { set("RESET synchronous_standby_names"); }
  LostStandby(const LostStandby&) = delete;
  LostStandby& operator=(const LostStandby&) = delete;

  void await_waiting(int commits) {
    database_.wait_until("SELECT count(*) >= " + std::to_string(commits) +
                             " FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
                         "t");
  }

 private:
  void set(const std::string& setting) {
    database_.run("ALTER SYSTEM " + setting);
    database_.run("SELECT pg_reload_conf()");
  }

  test::Database& database_;
};

TEST_F(SilentPostgres, MayWaitForAStandbyThatIsGone) {
  EXPECT_EQ(post("k0").status, 201);
  {
    LostStandby lost(database);
    lost.await_waiting(1);  // of the gate's own
    auto waiting = begin_post("k1");
    await_away();
    expect_in_doubt(waiting.get());
    EXPECT_EQ(post("k2").status, 503);
  }
  await_back();
  EXPECT_EQ(post("k1").header("idempotent-replayed"), "true");
  EXPECT_EQ(post("k2").status, 201);
  EXPECT_EQ(booked(), "k0:1 k1:1 k2:1");
}

// PostgreSQL then shows what it committed, though no standby has it.
TEST_F(SilentPostgres, IsNotTakenForACommitIfTheWaitForTheStandbyIsCancelled) {
  EXPECT_EQ(post("k0").status, 201);
  {
    LostStandby lost(database);
    lost.await_waiting(1);
    auto waiting = begin_post("k1");
    lost.await_waiting(2);
    database.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    expect_in_doubt(waiting.get());
  }
  await_back();
  EXPECT_EQ(post("k1").header("idempotent-replayed"), "true");
  EXPECT_EQ(booked(), "k0:1 k1:1");
}

}  // namespace
}  // namespace hapax::gate
