// hapax.epochs: the epoch of a partition as claims read it, beside hapax.checkpoints.
#include <gtest/gtest.h>

#include <functional>

#include "store/message/claim_batch.hpp"
#include "store/message/position_claim.hpp"
#include "store/operator/migrate.hpp"
#include "store/worker/checkpoints.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

class Epochs : public testing::Test {
 protected:
  std::int64_t take() {
    epoch = take_partition(session, {"group", {"payments", 0}, "w", "spec", "booking", epoch, true})
                ->epoch;
    return epoch;
  }

  // The ways to claim that are let in under `its_epoch`. Nothing of them stays.
  std::string let_in(Session& by, std::int64_t its_epoch) {
    const key::Identity identity{"key", "", {std::string(32, 'f'), "payload"}};
    const Source source{"group", "payments", 1, 0, 7};
    ClaimRequest request{identity, scope, source, std::chrono::hours(1)};
    request.epoch = its_epoch;
    ClaimRequest position = request;
    position.by_position = true;
    const std::span<const ClaimRequest> batch(&request, 1), positions(&position, 1);
    const std::pair<const char*, std::function<bool(Transaction&)>> ways[] = {
        {"message ", [&](Transaction& t) { return !claim(t, request).fenced; }},
        {"batch ", [&](Transaction& t) { return claim_batch(t, batch).keys[0].ours; }},
        {"position ", [&](Transaction& t) { return !claim(t, position).fenced; }},
        {"positions ", [&](Transaction& t) { return claim_positions(t, positions).keys[0].ours; }}};
    std::string found;
    for (const auto& [name, is_let_in] : ways) {
      Transaction transaction(by);
      try {
        if (is_let_in(transaction)) found += name;
      } catch (const DatabaseError& error) {
        found += error.fault().sqlstate + ' ';
      }
    }
    return found;
  }
  static constexpr const char* kAll = "message batch position positions ";

  std::string epochs() {
    return database.value(
        "SELECT string_agg(topic || partition || ' ' || epoch, ', ' ORDER BY "
        "topic, partition) FROM hapax.epochs");
  }
  std::string checkpoints() {
    return database.value(
        "SELECT string_agg(topic || partition || ' ' || epoch, ', ' ORDER BY "
        "topic, partition) FROM hapax.checkpoints");
  }

  // Pages of the tables of epochs and checkpoints that were read so far, in all sessions.
  int pages_so_far() {
    Transaction transaction(session);
    transaction.run(std::string("SELECT pg_stat_force_next_flush()"));
    transaction.commit();
    return database.count(
        "SELECT sum(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit) FROM "
        "pg_statio_user_tables WHERE relname IN ('epochs', 'checkpoints')");
  }

  test::Database database;
  Session session{database.worker()};
  const std::string scope = "booking";
  std::int64_t epoch = 0;
};

TEST_F(Epochs, FollowTakesAndDecisionsAndFenceEachWayToClaim) {
  take();
  EXPECT_EQ(let_in(session, epoch), kAll);
  take();
  EXPECT_EQ(let_in(session, epoch - 1), "");
  EXPECT_EQ(let_in(session, epoch), kAll);
  database.run("UPDATE hapax.checkpoints SET epoch = epoch + 1");
  EXPECT_EQ(let_in(session, epoch), "");
  EXPECT_EQ(epochs(), checkpoints());
  database.run("UPDATE hapax.checkpoints SET partition = 1");
  EXPECT_EQ(epochs(), checkpoints());
  EXPECT_EQ(let_in(session, epoch + 1), "") << "of a partition that is not there";
  database.run("DELETE FROM hapax.checkpoints");
  EXPECT_EQ(epochs(), "null");
}

// A pg_dump may hold its snapshot for hours, and checkpoints are written every second.
TEST_F(Epochs, AreReadAtOnceHoweverOftenACheckpointWasWrittenWhileASnapshotIsOpen) {
  take();
  agree_start(session, {"group", {"payments", 0}, "w", "spec", "booking", 0, true},
              {epoch, 0, "cluster", ""});
  const auto pages_of_claims = [&] {
    const int before = pages_so_far();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(let_in(session, epoch), kAll);
    return pages_so_far() - before;
  };
  pages_of_claims();  // statements are prepared
  const int without = pages_of_claims();

  Session old(database.worker());
  Transaction snapshot(old);
  snapshot.run(std::string("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1"));
  const std::string incarnation = read_store(session).incarnation;
  for (std::int64_t next = 0; next < 1'000; ++next)
    ASSERT_EQ(write_checkpoints(session, "group",
                                {{{"payments", 0}, incarnation, epoch, next, next + 1, true}})
                  .size(),
              1U);
  EXPECT_LE(pages_of_claims(), 2 * without);
}

TEST_F(Epochs, AreThoseOfCheckpointsOnTheSchemaBeforeAndWhileItIsMigrated) {
  Session owner(database.owner());
  migrate_down(owner, 15);
  take();
  Session before(database.worker());
  EXPECT_EQ(let_in(before, epoch), kAll);
  migrate_up(owner);
  EXPECT_EQ(epochs(), checkpoints());
  Session after(database.worker());
  for (Session* one : {&before, &after}) EXPECT_EQ(let_in(*one, epoch), kAll);
  take();
  for (Session* one : {&before, &after}) {
    EXPECT_EQ(let_in(*one, epoch - 1), "");
    EXPECT_EQ(let_in(*one, epoch), kAll);
  }
}

// Whose role got no right on the new table, or lost it.
TEST_F(Epochs, AreThoseOfCheckpointsForWhoMayNotReadThem) {
  take();
  database.run("REVOKE SELECT ON hapax.epochs FROM hapax_worker");
  Session without(database.worker());
  EXPECT_EQ(let_in(without, epoch - 1), "42501 42501 ");
  EXPECT_EQ(let_in(without, epoch), "message batch 42501 42501 ") << "positions need the right";
}

}  // namespace
}  // namespace hapax::store
