// The runbook that erases what hapax holds of one person, typed as docs/runbooks.md has it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sandbox/temporary_folder.hpp"
#include "support/command.hpp"
#include "support/runbook.hpp"

namespace hapax::support {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPerson = "alice@example.org";
constexpr const char* kHandler = "answering";  // stores the payment's id as result

// The rows of hapax's tables that hold the person, as text or as bytes: "attempts 1 dead_letters 2
// …".
constexpr const char* kHolding = R"(
  SELECT coalesce(string_agg(name || ' ' || rows, ' ' ORDER BY name), '') FROM (
    SELECT relname AS name, (xpath('/row/c/text()', query_to_xml(format(
      'SELECT count(*) AS c FROM hapax.%I t WHERE strpos(t::text, %L) > 0 OR strpos(t::text, %L) > 0',
      relname, 'alice', encode('alice', 'hex')), false, true, '')))[1]::text::int AS rows
    FROM pg_class WHERE relnamespace = 'hapax'::regnamespace AND relkind = 'r') t
  WHERE rows > 0)";

constexpr const char* kLettersNow =
    "SELECT string_agg(concat_ws(' ', id, key, coalesce(ended_as, 'open'), error), ', ' ORDER BY "
    "id) "
    "FROM hapax.dead_letters";

// Alice has a payment that completed, a dead letter that is open, and one that was replayed with
// another payload. Bob has a payment and an open dead letter. Their ids begin with 17.
class ErasingAPerson : public testing::Test {
 protected:
  void SetUp() override {
    HAPAX_NEEDS_KAFKA();
    site_ = std::make_unique<Site>(1);
    operator_ = site_->database().make_operator().url;
    site_->database().run("ALTER TABLE hapax.dead_letters ALTER id RESTART WITH 17");
    worker_ = site_->worker("w", {{"route", {{"handler", kHandler}}}});
    Producer producer(site_->bootstrap());
    producer.send(site_->payment(0, {{"id", kPerson}}));
    // PostgreSQL refuses its amount, and quotes it in the error. The other one has no id.
    producer.send(of_alice(1, {{"id", "p1"}, {"account", "a1"}, {"amount_minor", kPerson}}));
    site_->await("SELECT count(*) FROM hapax.dead_letters", "1");
    producer.send(of_alice(2, {{"account", "a2"}, {"amount_minor", 3}}));
    site_->await("SELECT count(*) FROM hapax.dead_letters", "2");
    replay_the_second();
    producer.send(site_->payment(3, {{"id", "bob"}}));
    producer.send(site_->payment(4, {{"amount_minor", "bob"}}));
    site_->await_no_lag();
  }

  Outgoing of_alice(int number, const json& payload) const {
    Outgoing record = site_->payment(number);
    record.payload = payload.dump();
    record.key = kPerson;
    record.headers.emplace_back("sent-by", kPerson);
    return record;
  }

  void replay_the_second() {
    const sandbox::TemporaryFolder folder("fixed");
    const auto fixed = folder.path() / "fixed.json";
    std::ofstream(fixed) << json{{"id", kPerson}, {"account", "a2"}, {"amount_minor", 3}};
    const Said said = hapax({"dead", "replay", "18", "--payload", fixed, "--why",
                             std::string("as ") + kPerson + " asked", "--yes", "--url", operator_},
                            worker_->config());
    ASSERT_EQ(said.code, 0) << said.text;
  }

  std::string value(const std::string& sql) { return site_->database().value(sql); }

  std::unique_ptr<Site> site_;
  std::unique_ptr<WorkerProcess> worker_;
  std::string operator_;
};

TEST_F(ErasingAPerson, LeavesNothingOfThemAndDoublesNothing) {
  ASSERT_EQ(value(kHolding),
            "attempts 1 dead_letters 2 idempotency_keys 3 operator_log 1 replays 1");
  const std::string booked = value("SELECT string_agg(id, ' ' ORDER BY nr) FROM payments");

  Runbook runbook("## Erasing personal data", *site_,
                  {{"OWNER", site_->database().owner().url}, {"OPERATOR", operator_}});
  const std::string typed = runbook.type_next(worker_->config().parent_path());
  EXPECT_THAT(typed, HasSubstr("nothing was changed; with -v erase=yes it is erased"));

  EXPECT_EQ(value(kHolding), "") << typed;
  EXPECT_THAT(value(kLettersNow), AllOf(HasSubstr("17 p1 discarded erased, 18 p2 replayed erased, "
                                                  "19 p4 open "),
                                        HasSubstr("bob")));
  EXPECT_EQ(value("SELECT string_agg(key || ' ' || status || coalesce(result ->> 'booked', ''), "
                  "', ' ORDER BY key) FROM hapax.idempotency_keys"),
            "p0 completed, p1 failed, p2 completed, p3 completedbob, p4 failed");

  // All of it comes again, and hapax knows it. The handler answers two duplicates; what
  // completed the second of Alice's had another payload.
  const Said back = hapax({"offsets", "rewind", site_->topic() + "/0", "--to", "0", "--why",
                           "again", "--yes", "--url", operator_},
                          worker_->config());
  ASSERT_EQ(back.code, 0) << back.text;
  site_->await("SELECT count(*) FROM payments WHERE account = 'answers'", "2");
  site_->await_no_lag();
  expect_leaves(*worker_);
  EXPECT_EQ(
      value("SELECT string_agg(id, ' ' ORDER BY nr) FROM payments WHERE account <> 'answers'"),
      booked);
  EXPECT_EQ(
      value("SELECT string_agg(id, ', ' ORDER BY id) FROM payments WHERE account = 'answers'"),
      "bob, nothing stored");
  EXPECT_EQ(value("SELECT count(*) FILTER (WHERE ended_at IS NULL) || ' of ' || count(*) "
                  "FROM hapax.dead_letters"),
            "1 of 3");
  EXPECT_EQ(value(kHolding), "");
  const Said audit = hapax({"audit", "--topic", site_->topic()}, worker_->config());
  EXPECT_EQ(audit.code, 0) << audit.text;
}

}  // namespace
}  // namespace hapax::support
