// The database is a logical copy: pg_dump into another server, or CREATE DATABASE … TEMPLATE. A
// copy has the store's id and the checkpoints. So a staging copy would take production's offsets
// for its own, though production may have moved. The worker cannot know that, so it halts and asks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/command.hpp"
#include "support/group_lag.hpp"
#include "support/kafka_admin.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kStore = "SELECT id FROM hapax.store";
constexpr const char* kOpenHalts = "SELECT count(*) FROM hapax.halts WHERE ended_at IS NULL";
constexpr const char* kPlace =
    "SELECT oid || ' of system ' || system_identifier FROM pg_database, pg_control_system() "
    "WHERE datname = current_database()";

// As an operator would, into a database of the same name. Roles are in no dump.
void dump_into(sandbox::PostgresServer& other, const std::string& name) {
  const auto run = [&](const std::string& command) {
    sandbox::run_to_end(other.program("/bin/sh", {"-c", command}), std::chrono::seconds(60));
  };
  other.create_database(name);
  run("psql -q -c 'CREATE ROLE hapax_worker LOGIN' " + other.url());
  run("pg_dump " + test::postgres().url(name) + " | psql -q -v ON_ERROR_STOP=1 " + other.url(name));
}

enum class How { dumped, by_template };

void PrintTo(How how, std::ostream* out) {
  *out << (how == How::dumped ? "DumpIntoAnotherServer" : "Template");
}

// Payments [0, 20) are booked, the worker has left, and the site's database is a copy of that.
struct Copied {
  explicit Copied(How how) {
    Producer producer(site.bootstrap());
    site.pay(producer, 0, 20);
    const auto worker = site.worker("before");
    site.await_no_lag();
    expect_leaves(*worker);
    original = site.database().value(kPlace);
    const std::string name = site.database().name();
    if (how == How::dumped) {
      other = std::make_unique<sandbox::PostgresServer>();
      dump_into(*other, name);
      site.database().look_at(*other, name);
    } else {
      copy = site.database().copy();
      site.database().look_at(test::postgres(), copy->name());
    }
  }

  Said resume(const WorkerProcess& worker, const std::string& decision) {
    return hapax({"resume", site.topic(), "--decision", decision, "--why", "copied", "--yes",
                  "--url", site.database().owner().url},
                 worker.config());
  }

  Site site{2};
  std::string original;
  std::unique_ptr<sandbox::PostgresServer> other;
  std::unique_ptr<test::Database> copy;
};

class LogicalCopy : public testing::TestWithParam<How> {};

TEST_P(LogicalCopy, HaltsNamingBothPlacesAndGoesOnIfItIsTheOriginalNow) {
  HAPAX_NEEDS_KAFKA();
  Copied copied(GetParam());
  Site& site = copied.site;
  Producer producer(site.bootstrap());
  site.pay(producer, 20, 10);
  const auto worker = site.worker("w");
  worker->await("halted", {{"reason", "store_copied"}}, 2);
  worker->await_not_ready("halted: store_copied");
  site.await(kOpenHalts, "2");
  EXPECT_THAT(site.database().value("SELECT DISTINCT detail FROM hapax.halts"),
              AllOf(HasSubstr("made in database oid " + copied.original),
                    HasSubstr("now found in oid " + site.database().value(kPlace))));
  EXPECT_EQ(site.database().value("SELECT count(*) FROM payments"), "20");

  // Nothing but an answer to the question ends it.
  const Said unfit = copied.resume(*worker, "accept_kafka");
  EXPECT_NE(unfit.code, 0);
  EXPECT_THAT(unfit.text, HasSubstr("what does: moved, copy, retry"));
  EXPECT_EQ(copied.resume(*worker, "retry").code, 0);
  worker->await("halted", {{"reason", "store_copied"}}, 4);
  site.await(kOpenHalts, "2");
  EXPECT_EQ(site.database().value("SELECT count(*) FROM payments"), "20");

  const std::string id = site.database().value(kStore);
  const Said moved = copied.resume(*worker, "moved");
  EXPECT_EQ(moved.code, 0) << moved.text;
  site.await_no_lag();
  site.expect_exact(30);
  EXPECT_EQ(site.database().value(kStore), id);
  worker->await_ready();
  expect_leaves(*worker);
}

INSTANTIATE_TEST_SUITE_P(By, LogicalCopy, testing::Values(How::dumped, How::by_template),
                         testing::PrintToStringParamName());

// A copy for staging. In production's group its worker still takes nothing. In a group of its own
// it begins from the start, and finds all that was booked before the copy.
TEST(StagingCopy, TakesNoOffsetOfProductionsAndDoublesNothingInAGroupOfItsOwn) {
  HAPAX_NEEDS_KAFKA();
  Copied copied(How::by_template);
  Site& site = copied.site;
  const auto before = committed(site.bootstrap(), site.group(), site.topic(), 0);
  const auto strayed = site.worker("strayed");
  strayed->await("halted", {{"reason", "store_copied"}}, 2);
  const std::string productions = site.database().value(kStore);
  site.await(kOpenHalts, "2");
  const Said said = copied.resume(*strayed, "copy");
  EXPECT_EQ(said.code, 0) << said.text;
  strayed->await("halted", {{"reason", "checkpoint_missing"}}, 2);
  expect_leaves(*strayed);
  EXPECT_NE(site.database().value(kStore), productions);
  EXPECT_EQ(committed(site.bootstrap(), site.group(), site.topic(), 0), before);

  const auto staging =
      site.worker("staging", {{"kafka", {{"group.id", "staging-of-" + site.group()}}}});
  Producer producer(site.bootstrap());
  site.pay(producer, 20, 10);
  await_no_lag(site.bootstrap(), "staging-of-" + site.group(), site.topic(), site.partitions());
  EXPECT_EQ(site.database().value("SELECT count(*), count(DISTINCT id) FROM payments"), "30|30");
  expect_leaves(*staging);
}

}  // namespace
}  // namespace hapax::support
