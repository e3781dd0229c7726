// Batches that ran into others take turns.
#include "store/message/claim_batch.hpp"

#include <gtest/gtest.h>

#include "support/database.hpp"

namespace hapax::store {
namespace {

struct Turns : testing::Test {
  // Takes one key of `topic`; the transaction stays open.
  void claim(Transaction& transaction, const std::string& key, const std::string& topic,
             bool one_at_a_time) {
    const key::Identity identity{key, "", {std::string(32, 'f'), "payload"}};
    const Source source{"group", topic, 1, 0, 1};
    const ClaimRequest request{identity, scope, source, std::chrono::hours(1)};
    claim_batch(transaction, std::span(&request, 1), one_at_a_time);
  }

  const std::string scope = "booking";
  test::Database database;
  Session first{database.worker()};
  Session second{[&] {
    ConnectOptions impatient = database.worker();
    impatient.lock_timeout = std::chrono::milliseconds(50);
    return impatient;
  }()};
};

TEST_F(Turns, AreOfOneGroupAndTopicAndOfThoseThatAskForThem) {
  Transaction open(first);
  claim(open, "a", "payments", true);
  const auto try_one = [&](const std::string& topic, bool one_at_a_time) {
    Transaction transaction(second);
    claim(transaction, "b", topic, one_at_a_time);
  };
  EXPECT_NO_THROW(try_one("payments", false));
  EXPECT_NO_THROW(try_one("orders", true));
  try {
    try_one("payments", true);
    ADD_FAILURE() << "two at a time";
  } catch (const DatabaseError& error) {
    EXPECT_EQ(error.sqlstate(), "55P03");
  }
  open.rollback();
  EXPECT_NO_THROW(try_one("payments", true));
}

}  // namespace
}  // namespace hapax::store
