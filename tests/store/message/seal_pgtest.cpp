// The seal from PostgreSQL's side: no client can COMMIT a claim without its completion. Here
// hapax's own statements are used, and COMMIT is sent as psql would.
#include <gtest/gtest.h>

#include <list>
#include <pqxx/pqxx>

#include "store/message/claim.hpp"
#include "store/operator/inspect.hpp"
#include "support/database.hpp"

namespace hapax::store {
namespace {

class SealInSql : public testing::Test {
 protected:
  SealInSql() : session(database.worker()) {}

  ClaimRequest request(const std::string& key) {
    identities.push_back({key, "", {std::string(32, 'f'), "payload"}});
    return {identities.back(), scope, source, std::chrono::hours(1)};
  }

  // The SQLSTATE of a COMMIT that hapax did not send; "" if it was accepted.
  static std::string raw_commit(Transaction& transaction) {
    try {
      transaction.pqxx().exec("COMMIT");
    } catch (const pqxx::sql_error& error) {
      return error.sqlstate();
    }
    return "";
  }

  void commit_claim(const std::string& key) {
    Transaction transaction(session);
    const ClaimRequest wanted = request(key);
    complete(transaction, wanted, claim(transaction, wanted).nonce, std::nullopt);
  }

  int keys() { return database.count("SELECT count(*) FROM hapax.idempotency_keys"); }

  test::Database database;
  Session session;
  std::list<key::Identity> identities;
  const std::string scope = "booking";
  const Source source{"group", "payments", 1, 0, 7};
};

TEST_F(SealInSql, RefusesToCommitAPlainClaim) {
  Transaction transaction(session);
  EXPECT_FALSE(claim(transaction, request("k")).holder);
  EXPECT_EQ(raw_commit(transaction), "HX001");
  EXPECT_EQ(keys(), 0);
}

TEST_F(SealInSql, RefusesToCommitAClaimUnderASavepoint) {
  Transaction transaction(session);
  transaction.run(std::string("SAVEPOINT a"));
  claim(transaction, request("k"));
  transaction.run(std::string("RELEASE a"));
  EXPECT_EQ(raw_commit(transaction), "HX001");
  EXPECT_EQ(keys(), 0);
}

TEST_F(SealInSql, RefusesToCommitATakeOver) {
  commit_claim("k");
  database.run("UPDATE hapax.idempotency_keys SET status = 'failed'");
  Transaction transaction(session);
  const ClaimRequest wanted = request("k");
  const Claim claimed = claim(transaction, wanted);
  ASSERT_EQ(claimed.holder->status, "failed");
  EXPECT_EQ(take_over(transaction, wanted, *claimed.holder), TakeOver::ours);
  EXPECT_EQ(raw_commit(transaction), "HX001");
  EXPECT_EQ(database.value("SELECT status FROM hapax.idempotency_keys"), "failed");
}

TEST_F(SealInSql, RefusesToCommitABatchThatBeginsWithADuplicate) {
  commit_claim("old");
  Transaction transaction(session);
  EXPECT_TRUE(claim(transaction, request("old")).holder);
  EXPECT_FALSE(claim(transaction, request("new")).holder);
  EXPECT_EQ(raw_commit(transaction), "HX001");
  EXPECT_EQ(keys(), 1);
}

TEST_F(SealInSql, HasNothingAgainstOnlyDuplicates) {
  commit_claim("old");
  Transaction transaction(session);
  EXPECT_TRUE(claim(transaction, request("old")).holder);
  EXPECT_EQ(raw_commit(transaction), "");
  EXPECT_EQ(keys(), 1);
}

TEST_F(SealInSql, RefusesTheCompletionOfAnotherTransaction) {
  Transaction first(session);
  const ClaimRequest wanted = request("k");
  const Claim claimed = claim(first, wanted);
  first.rollback();
  Transaction second(session);
  claim(second, request("other"));
  try {
    complete(second, wanted, claimed.nonce, std::nullopt);
    FAIL() << "completed";
  } catch (const DatabaseError& error) {
    EXPECT_EQ(error.sqlstate(), "HX002");
  }
  EXPECT_EQ(keys(), 0);
}

TEST_F(SealInSql, OfOneClaimDoesNotCoverALaterOne) {
  Transaction transaction(session);
  const Claim claimed = claim(transaction, request("sealed"));
  transaction.run(std::string("SELECT hapax.seal('" + claimed.nonce + "')"));
  claim(transaction, request("later"));
  EXPECT_EQ(raw_commit(transaction), "HX001");
  EXPECT_EQ(keys(), 0);
}

TEST_F(SealInSql, IsLostWithTheSavepointThatItWasSetIn) {
  Transaction transaction(session);
  const Claim claimed = claim(transaction, request("k"));
  transaction.run(std::string("SAVEPOINT a"));
  transaction.run(std::string("SELECT hapax.seal('" + claimed.nonce + "')"));
  transaction.run(std::string("ROLLBACK TO a"));
  EXPECT_EQ(raw_commit(transaction), "HX001");
  EXPECT_EQ(keys(), 0);
}

TEST_F(SealInSql, NoncesNeverRepeatAcrossSessions) {
  Session other(database.worker());
  EXPECT_NE(session.next_nonce(), session.next_nonce());
  EXPECT_NE(session.next_nonce(), other.next_nonce());
}

}  // namespace
}  // namespace hapax::store
