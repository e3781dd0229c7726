// What an operator is told if the connection ends while an order is under way.
#include <gmock/gmock.h>

#include "cli/letter_orders.hpp"
#include "cli/operator.hpp"
#include "store/transaction.hpp"
#include "support/database.hpp"

namespace hapax::app {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class OrderInDoubt : public testing::Test {
 protected:
  // PostgreSQL ends the session that meets it.
  static constexpr const char* kEnd = "SELECT pg_terminate_backend(pg_backend_pid())";

  std::string told_of(const std::function<void()>& order) {
    try {
      order();
    } catch (const store::DatabaseError& error) {
      EXPECT_NE(error.fault().kind, store::Fault::Kind::sql) << "it would not be exit code 4";
      return error.what();
    }
    return "";
  }
  std::string told_of_a_change(const std::function<void(store::Session&)>& order) {
    return told_of([&] {
      store::Session session(database.owner());
      change(operator_rights(), [&] {
        order(session);
        return kDone;
      });
    });
  }

  test::Database database;
};

TEST_F(OrderInDoubt, IsToldWithThePlaceThatShowsIt) {
  const auto expected = AllOf(HasSubstr("It is not known whether the order was carried out."),
                              HasSubstr("FROM hapax.operator_log"));
  EXPECT_THAT(
      told_of_a_change([](store::Session& session) { store::Transaction(session).run(kEnd); }),
      expected);
  EXPECT_THAT(told_of_a_change([this](store::Session& session) {
                const int pid =
                    store::Transaction(session).run("SELECT pg_backend_pid()")[0][0].as<int>();
                database.run("SELECT pg_terminate_backend(" + std::to_string(pid) + ", 60000)");
                store::Transaction(session).run("SELECT 1");
              }),
              expected);
}

TEST_F(OrderInDoubt, AboutManyLettersIsToldWithThoseThatAreDone) {
  database.run(
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
      "timestamp_type, header_names, header_values, reason, error, attempts, handler, "
      "handler_version, scope, first_at) SELECT 'g', 't', 1, 0, n, 'none', '{}', '{}', 'rejected', "
      "'no', 1, 'h', '1', 's', now() FROM generate_series(1, 600) n;"
      "CREATE FUNCTION hang_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;"
      "CREATE TRIGGER hang_up BEFORE UPDATE ON hapax.dead_letters FOR EACH ROW "
      "WHEN (NEW.id > 500) EXECUTE FUNCTION hang_up()");
  const auto discard = [this] {
    store::Session session(database.owner());
    change(operator_rights(), [&] {
      discard_all(session, {"g", "ann", "old"}, {.group = "g"});
      return kDone;
    });
  };
  EXPECT_THAT(told_of(discard),
              HasSubstr("It is not known whether the order was carried out for letters above id "
                        "500; up to there it was."));
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.dead_letters WHERE ended_at IS NOT NULL"),
            500);
}

}  // namespace
}  // namespace hapax::app
