#include "tools/bench/tables.hpp"

#include "sql_statements.hpp"
#include "store/transaction.hpp"

namespace hapax::store {

BenchTables::BenchTables(Session& owner, std::string name, const std::string& worker_role)
    : owner_(owner), name_(std::move(name)) {
  Transaction transaction(owner_);
  const std::string role =
      transaction.query("SELECT quote_ident($1)", {Parameter(worker_role)})[0][0].text();
  transaction.run("CREATE SCHEMA " + name_);
  // Without any unique constraint: nothing but hapax stands against a double payment.
  transaction.run("CREATE TABLE " + payments() +
                  " (id text NOT NULL, account text NOT NULL, amount_minor bigint NOT NULL)");
  transaction.run("GRANT USAGE ON SCHEMA " + name_ + " TO " + role);
  transaction.run("GRANT SELECT, INSERT ON " + payments() + " TO " + role);
  transaction.commit();
}

BenchTables::Booked BenchTables::booked() {
  Transaction transaction(owner_);
  const Rows rows = transaction.run("SELECT count(*), count(DISTINCT id) FROM " + payments());
  return {rows[0][0].as<std::size_t>(), rows[0][1].as<std::size_t>()};
}

void BenchTables::fill_keys(const std::string& scope, std::size_t from, std::size_t end) {
  Transaction transaction(owner_);
  transaction.run("SET LOCAL statement_timeout TO 0");
  transaction.run(sql::kFillBench, {Parameter(scope), Parameter(from), Parameter(end)});
  transaction.commit();
}

void BenchTables::clear() {
  Transaction transaction(owner_);
  transaction.run("TRUNCATE " + payments());
  transaction.commit();
}

void BenchTables::remove(const std::string& prefix) {
  Transaction transaction(owner_);
  transaction.run("SET LOCAL statement_timeout TO 0");
  transaction.run("DROP SCHEMA " + name_ + " CASCADE");
  transaction.run(sql::kDeleteBench, {Parameter(prefix)});
  transaction.run(sql::kDeleteBenchForgotten, {Parameter(prefix)});
  transaction.commit();
}

std::string role_of(Session& session) {
  Transaction transaction(session);
  return transaction.run("SELECT current_user")[0][0].text();
}

}  // namespace hapax::store
