// The runbooks for changes under load, typed as docs/runbooks.md has them: a deploy, its roll back,
// other tables, another key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/command.hpp"
#include "support/runbook.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;

class DeployRunbooks : public testing::Test {
 protected:
  void SetUp() override {
    HAPAX_NEEDS_KAFKA();
    site_ = std::make_unique<Site>(2);
    operator_ = site_->database().make_operator().url;
    producer_ = std::make_unique<Producer>(site_->bootstrap());
  }

  // The handler "payments" of this release.
  static json release(const std::string& plugin) {
    return {{"handler", "payments"},
            {"plugin", HAPAX_BINARY_DIR "/lib/lib" + plugin + ".so"},
            {"breaker", 3}};
  }
  std::unique_ptr<WorkerProcess> worker(const std::string& plugin) {
    return site_->worker("w", {{"route", release(plugin)}});
  }
  void write(const WorkerProcess& beside, const std::string& name, const json& patch) {
    std::ofstream(beside.config().parent_path() / name) << site_->options("w", patch).config;
  }

  void pay(int first, int count, const json& more = {}, std::chrono::seconds ago = {}) {
    const auto sent = std::chrono::system_clock::now() - ago;
    for (int number = first; number < first + count; ++number) {
      Outgoing record = site_->payment(number, more);
      record.timestamp_ms =
          std::chrono::duration_cast<std::chrono::milliseconds>(sent.time_since_epoch()).count();
      producer_->produce(record);
    }
    producer_->flush();
  }
  std::string value(const std::string& sql) { return site_->database().value(sql); }
  Runbook runbook(const std::string& heading) {
    return Runbook(heading, *site_,
                   {{"OWNER", site_->database().owner().url}, {"OPERATOR", operator_}});
  }

  std::unique_ptr<Site> site_;
  std::string operator_;
  std::unique_ptr<Producer> producer_;
};

TEST_F(DeployRunbooks, ADeployBringsASchemaAndAHandlerOneWorkerAfterTheOther) {
  site_->database().run("ALTER TABLE payments ADD COLUMN currency text");
  const int newest = site_->database().count("SELECT max(number) FROM hapax.schema_migrations");
  const auto one = worker("payments");
  const Said down = hapax({"migrate", "down", "--to", std::to_string(newest - 1), "--yes", "--url",
                           site_->database().owner().url},
                          one->config());
  ASSERT_EQ(down.code, 0) << down.text;
  const auto two = worker("payments");
  pay(0, 20);
  site_->await_booked(20);

  Runbook deploy = runbook("## Deploying a release");
  write(*one, "new.json", {{"route", release("next_payments")}});
  deploy.type_next(one->config().parent_path());
  EXPECT_EQ(site_->database().count("SELECT max(number) FROM hapax.schema_migrations"), newest);
  pay(20, 10, {{"currency", "EUR"}});

  expect_leaves(*one);
  const auto next_one = worker("next_payments");
  deploy.set("WORKER", next_one->address());
  EXPECT_THAT(deploy.type_next(one->config().parent_path()), HasSubstr("version=\"2\"} 1"));
  expect_leaves(*two);
  const auto next_two = worker("next_payments");
  next_two->await("partition_started");
  pay(30, 10, {{"currency", "EUR"}});
  site_->await_no_lag();
  deploy.type_next(one->config().parent_path());
  site_->expect_exact(40);
  EXPECT_GE(site_->database().count("SELECT count(currency) FROM payments"), 10);
  expect_leaves(*next_one);
  expect_leaves(*next_two);
}

TEST_F(DeployRunbooks, ARollBackEndsTheHaltAndRunsWhatTheReleaseGaveUp) {
  const auto old = worker("payments");
  pay(0, 10);
  site_->await_no_lag();
  expect_leaves(*old);
  const auto broken = worker("next_payments");
  pay(10, 40);  // none has a currency
  broken->await("halted", {{"reason", "breaker"}});
  expect_leaves(*broken);
  EXPECT_GE(site_->database().count("SELECT count(*) FROM hapax.dead_letters"), 3);

  const auto back = worker("payments");
  Runbook rolled_back = runbook("## Rolling back");
  rolled_back.type_next(back->config().parent_path());
  site_->await_no_lag();
  EXPECT_THAT(rolled_back.type_next(back->config().parent_path()),
              HasSubstr("every offset is accounted for"));
  EXPECT_EQ(value("SELECT count(*), count(DISTINCT id) FROM payments"), "50|50");
  EXPECT_EQ(value("SELECT count(*) FROM hapax.dead_letters WHERE ended_at IS NULL"), "0");
  expect_leaves(*back);
}

TEST_F(DeployRunbooks, AColumnIsAddedUnderWorkersAndFilledIn) {
  const auto old = worker("payments");
  pay(0, 20);
  site_->await_booked(20);
  Runbook change = runbook("## Changing the handler's tables");
  const auto folder = old->config().parent_path();
  change.type_next(folder);
  pay(20, 10);
  site_->await_booked(30);

  expect_leaves(*old);
  const auto next = worker("next_payments");
  pay(30, 10, {{"currency", "SEK"}});
  site_->await_booked(40);
  change.type_next(folder);
  pay(40, 10, {{"currency", "SEK"}});
  site_->await_no_lag();
  write(*old, "new.json", {{"route", release("next_payments")}});
  change.type_next(folder);
  site_->expect_exact(50);
  EXPECT_EQ(value("SELECT string_agg(currency || n, ' ' ORDER BY currency) FROM (SELECT currency, "
                  "count(*) AS n FROM payments GROUP BY currency) t"),
            "EUR30 SEK20");
  expect_leaves(*next);
}

// One message waits for a retry, and one behind it is settled: so their partition is not drained.
TEST_F(DeployRunbooks, AnotherKeyIsTakenOnceEachPartitionIsDrained) {
  const json retry = {{"max_attempts", 1000}, {"first", "20ms"}, {"max", "50ms"}};
  const json old_route = {{"route", {{"retry", retry}}}};
  const json new_route = {
      {"route", {{"retry", retry}, {"key", {{"header", nullptr}, {"json", {"/id", "/account"}}}}}}};
  const auto old = site_->worker("old", old_route);
  const auto folder = old->config().parent_path();
  pay(0, 20, {}, 60s);
  site_->await_no_lag();
  site_->database().run("SELECT pg_advisory_lock(1)");
  pay(20, 1, {{"do", "fail while locked"}}, 60s);
  site_->await("SELECT count(*) > 0 FROM hapax.attempts", "t");
  pay(21, 2, {}, 60s);
  site_->await_booked(22);
  write(*old, "new.json", new_route);
  Runbook change = runbook("## Changing the key");
  change.type_next(folder);
  expect_leaves(*old);

  {
    const auto early = site_->worker("early", new_route);
    early->await("halted", {{"reason", "key_spec_changed"}});
    early->await("key_changed");  // the other partition
    expect_leaves(*early);
  }
  site_->database().run("SELECT pg_advisory_unlock(1)");
  {
    const auto again = site_->worker("again", old_route);
    again->await("assigned");
    change.type_next(folder);
    site_->await_no_lag();
    expect_leaves(*again);
  }
  const auto next = site_->worker("next", new_route);
  next->await("key_changed", {}, 2);
  change.set("CHANGED", value("SELECT to_char((now() - interval '30 s') AT TIME ZONE 'UTC', "
                              "'YYYY-MM-DD\"T\"HH24:MI:SS')"));
  pay(23, 10);
  site_->await_no_lag();
  change.type_next(folder);
  site_->expect_exact(33);
  expect_leaves(*next);
}

}  // namespace
}  // namespace hapax::support
