// PostgreSQL answers, and refuses some of the payments, as with a full disk.
#include <gtest/gtest.h>

#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kRefusedPayments = 40;

// The trigger refuses the payments of one account of ten; a sequence, which no rollback takes back,
// counts how often.
constexpr const char* kFullDisk =
    "CREATE SEQUENCE refused; GRANT USAGE ON refused TO hapax_worker;"
    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "  IF NEW.account = 'a3' THEN PERFORM nextval('refused'); "
    "    RAISE 'could not extend file' USING ERRCODE = 'disk_full'; END IF; RETURN NEW; END $$;"
    "CREATE TRIGGER refuse BEFORE INSERT ON payments FOR EACH ROW EXECUTE FUNCTION refuse()";

TEST(FullDisk, IsOneLineAWorkerAndOneAtItsEndThoughOtherWorkGoesOn) {
  Site site = Site::on_mock_cluster(2);
  site.database().run(kFullDisk);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, kRefusedPayments);
  const auto worker = site.worker("w");
  site.await_booked(kRefusedPayments * 9 / 10);
  site.await("SELECT last_value >= 10 FROM refused", "t");
  EXPECT_EQ(worker->count("postgres_down", {{"sqlstate", "53100"}}), 1U);
  EXPECT_EQ(worker->count("postgres_up"), 0U) << worker->output();
  worker->await_not_ready("postgres: down");

  site.database().run("DROP TRIGGER refuse ON payments");
  worker->await("postgres_up");
  site.await_no_lag();
  site.expect_exact(kRefusedPayments);
  EXPECT_EQ(worker->count("postgres_down"), 1U);
  EXPECT_EQ(worker->count("postgres_up"), 1U);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.attempts"), "0");
  worker->await_ready();
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
