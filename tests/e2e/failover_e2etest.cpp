// PostgreSQL is gone for good, and its successor lacks the last commits. A replica that lagged is
// promoted, or a backup is restored to a point in time. Workers reach it by a connection string
// with two hosts, or through a pooler that now leads to it.
//
// Kafka's offsets and the lost server's checkpoints cover these commits. So only the successor can
// tell which messages must run again.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "support/kafka_admin.hpp"
#include "support/pooler.hpp"
#include "support/site.hpp"
#include "support/successor.hpp"

namespace hapax::support {
namespace {

constexpr int kBefore = 200;  // half of them is below a checkpoint that survives
constexpr int kLost = 200;    // none of these does
constexpr int kAfter = 100;   // sent while there is no PostgreSQL
constexpr int kAll = kBefore + kLost + kAfter;

enum class Reach { both_hosts, pooler };

struct Failure {
  Way way;
  Reach reach;
  bool by_position = false;
};

void PrintTo(const Failure& failure, std::ostream* out) {
  *out << (failure.way == Way::promoted_replica ? "PromotedReplica" : "RestoredBackup")
       << (failure.reach == Reach::pooler ? "ThroughPgBouncer" : "")
       << (failure.by_position ? "ByPosition" : "");
}

std::set<std::string> lines(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// A site whose PostgreSQL dies. The tests' server is there again at the end, however that comes.
struct Dying {
  explicit Dying(const Failure& failure)
      : by_position(failure.by_position),
        successor(Successor::make(failure.way)),
        through_pooler(failure.reach == Reach::pooler) {
    if (through_pooler) pooler.emplace(site.database().name(), test::postgres().port());
    one = worker("one");
    two = worker("two");
    one->await("partition_started");
    two->await("partition_started");
  }
  ~Dying() {
    one.reset();
    two.reset();
    if (!test::postgres().running()) test::postgres().start();
  }
  Dying(const Dying&) = delete;
  Dying& operator=(const Dying&) = delete;

  std::unique_ptr<WorkerProcess> worker(const std::string& name) {
    std::string hosts = "127.0.0.1:";
    hosts += through_pooler ? std::to_string(pooler->port())
                            : std::to_string(test::postgres().port()) +
                                  ",127.0.0.1:" + std::to_string(successor->port());
    nlohmann::json route = {{"options", {{"journal", journal}}}};
    if (by_position) route["key"] = "position";
    // No worker dies here. Sessions are long, so that on a slow machine none seems to.
    return site.worker(
        name, {{"kafka", {{"session.timeout.ms", 30'000}}},
               {"postgres",
                {{"url", "postgresql://hapax_worker@" + hosts + "/" + site.database().name()}}},
               {"route", route}});
  }

  // Each is refused, and so a dead letter, unless it follows the one before it of its account.
  void pay(int first, int count) {
    for (int number = first; number < first + count; ++number)
      producer.produce(site.payment(number, {{"do", "next"}, {"sequence", number / 10}}));
    producer.flush();
  }

  // Returns what of [0, kBefore + kLost) the successor has.
  std::set<std::string> die() {
    test::postgres().kill();
    pay(kBefore + kLost, kAfter);
    for (WorkerProcess* worker : {one.get(), two.get()}) worker->await("postgres_down");
    site.database().look_at(successor->stand_by(), site.database().name());
    return lines(site.database().value("SELECT id FROM payments"));
  }

  void go_on() {
    successor->take_over();
    if (pooler) pooler->lead_to(successor->port());
    site.await_booked(kAll);
    site.await_no_lag();
  }

  std::map<std::string, int> runs() const {
    std::map<std::string, int> runs;
    std::ifstream file(journal);
    for (std::string id; file >> id;) ++runs[id];
    return runs;
  }

  const bool by_position;
  sandbox::TemporaryFolder folder{"journal"};
  const std::string journal = folder.path() / "journal";
  Site site{2};
  std::unique_ptr<Successor> successor;
  bool through_pooler;
  std::optional<Pooler> pooler;
  Producer producer{site.bootstrap()};
  std::unique_ptr<WorkerProcess> one;
  std::unique_ptr<WorkerProcess> two;
};

class Failover : public testing::TestWithParam<Failure> {};

TEST_P(Failover, RunsExactlyWhatWasLostAgainInItsOrder) {
  HAPAX_NEEDS_KAFKA();
  if (const auto missing = Pooler::missing(); missing && GetParam().reach == Reach::pooler)
    GTEST_SKIP() << "NOT TESTED through PgBouncer: " << *missing;
  Dying dying(GetParam());
  Site& site = dying.site;
  dying.pay(0, kBefore / 2);
  site.await_no_lag();
  dying.pay(kBefore / 2, kBefore / 2);
  site.await_booked(kBefore * 3 / 4);
  dying.successor->part();  // in the midst of the second half
  dying.pay(kBefore, kLost);
  site.await_no_lag();
  site.expect_exact(kBefore + kLost, 0, GetParam().by_position);

  const std::set<std::string> kept = dying.die();
  EXPECT_GE(kept.size(), kBefore * 3U / 4U);
  for (int number = kBefore; number < kBefore + kLost; ++number)
    ASSERT_FALSE(kept.contains("p" + std::to_string(number))) << "lost nothing, so shows nothing";
  dying.go_on();

  site.expect_exact(kAll, 0, GetParam().by_position);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.attempts"), "0");
  std::map<std::string, int> runs = dying.runs();
  for (int number = 0; number < kAll; ++number) {
    const std::string id = "p" + std::to_string(number);
    const bool lost = number < kBefore + kLost && !kept.contains(id);
    EXPECT_EQ(runs[id], lost ? 2 : 1) << id << (lost ? ", lost" : ", not lost");
  }
  for (int partition = 0; partition < site.partitions(); ++partition)
    EXPECT_EQ(site.database().count("SELECT next_offset FROM hapax.checkpoints WHERE partition = " +
                                    std::to_string(partition)),
              end_offset(site.bootstrap(), site.topic(), partition));
  for (WorkerProcess* worker : {dying.one.get(), dying.two.get()}) {
    worker->await("fenced", {{"by_another", false}});
    expect_leaves(*worker);
  }
}

INSTANTIATE_TEST_SUITE_P(To, Failover,
                         testing::Values(Failure{Way::promoted_replica, Reach::both_hosts},
                                         Failure{Way::promoted_replica, Reach::both_hosts, true},
                                         Failure{Way::promoted_replica, Reach::pooler},
                                         Failure{Way::restored_backup, Reach::both_hosts},
                                         Failure{Way::restored_backup, Reach::pooler}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace hapax::support
