#include "store/transaction.hpp"

#include <algorithm>

#include "sql_statements.hpp"
#include "store/quote.hpp"
#include "store/session_state.hpp"

namespace hapax::store {
// begin and commit are empty, because the texts that hapax sends hold BEGIN and COMMIT.
class Transaction::Work final : public pqxx::dbtransaction {
 public:
#if PQXX_VERSION_MAJOR < 7
  explicit Work(pqxx::connection& connection)
      : namedclass("hapax"), pqxx::dbtransaction(connection, false) {
    Begin();
  }
  ~Work() override { End(); }

 private:
  void do_begin() override {}
  // libpqxx 6's own version rolls back at an error. After that hapax could not tell whether the
  // transaction was still ours, aborted, or ended by the handler.
  pqxx::result do_exec(const char text[]) override { return direct_exec(text); }
#else
  explicit Work(pqxx::connection& connection)
      : pqxx::dbtransaction(connection, "hapax", std::make_shared<std::string>("ROLLBACK")) {
    register_transaction();
  }
  ~Work() override { close(); }

#endif
 public:
  void commit_ours() {
    ours_ = true;
    commit();
  }
  bool committed_by_handler() const { return committed_by_handler_; }

 private:
  void do_commit() override { committed_by_handler_ = !ours_; }

  bool ours_ = false;
  bool committed_by_handler_ = false;
};

Transaction::Transaction(Session& session) : session_(session) {}

Transaction::~Transaction() { rollback(); }

void Transaction::add(const std::string& statement) {
  close_rows();
  append(statement);
}

void Transaction::add_own(const std::string& statement) {
  if (session_.is_clean()) return add(statement);
  add("SELECT pg_catalog.set_config('hapax.role', pg_catalog.current_setting('role'), true), "
      "pg_catalog.set_config('role', 'none', true)");
  append(statement);
  append("SELECT pg_catalog.set_config('role', pg_catalog.current_setting('hapax.role'), true)");
}

void Transaction::append(const std::string& statement) {
  if (!pending_.empty()) pending_ += ';';
  pending_ += statement;
}

void Transaction::defer(std::string_view text, std::vector<Parameter> values) {
  if (rows_ && rows_->text() == text && grow(*rows_, values)) return;
  close_rows();
  begin_rows(std::string(text), values);
}

void Transaction::insert(std::string_view table, std::span<const std::string_view> columns,
                         std::span<Parameter> values) {
  if (rows_ && rows_->is(table, columns) && grow(*rows_, values)) return;
  close_rows();
  begin_rows(insert_text(table, columns), values, table, columns);
}

void Transaction::begin_rows(std::string text, std::span<Parameter> values, std::string_view table,
                             std::span<const std::string_view> columns) {
  const UserStatement& statement = prepared(text);
  if (statement.text.controls_transaction) {
    query(text, {values.begin(), values.end()});
    return;
  }
  PendingRows rows(statement.name, std::move(text), values, table, columns);
  if (statement.insert.empty() || values.empty()) {
    append(std::move(rows).statement());
  } else {
    rows_.emplace(std::move(rows));
  }
}

void Transaction::expect_plain(Leaves leaves) {
  if (!takes_plain_only_ || leaves == Leaves::nothing) return;
  has_refused_ = true;
  throw NotPlain();
}

bool Transaction::grow(PendingRows& rows, std::span<const Parameter> values) {
  if (values.size() != rows.width()) return false;
  if (rows.alone() && !prepare_set(rows.text())) return false;
  rows.add(values);
  return true;
}

Rows Transaction::query(std::string_view text, const std::vector<Parameter>& values) {
  const UserStatement& user = prepared(text);
  const std::string statement = execute_text(user.name, values);
  if (!user.text.controls_transaction || is_watched()) return run(statement);
  // Nothing can have ended the transaction before. If it were gone, SAVEPOINT would fail, and the
  // statement would not run.
  const std::string savepoint = quoted_name("hapax " + session_.next_nonce());
  add("SAVEPOINT " + savepoint);
  Rows rows = run(statement);
  savepoint_ = savepoint;
  return rows;
}

// Sends the pending texts before it prepares a new text, for two reasons. The new one may need what
// they make. It may also push a statement out of the cache that a pending text names. The functions
// that a text calls are looked at once.
UserStatement& Transaction::prepared(std::string_view text) {
  if (has_pending() && !session_.knows(text)) flush();
  UserStatement* statement = nullptr;
  try {
    statement = &session_.prepared(text);
  } catch (const DatabaseError&) {
    rethrow_named(std::string(text));
  }
  if (!statement->text.calls.empty()) {
    ArrayLiteral names;
    for (const std::string& name : statement->text.calls) names.add(name);
    const std::string list[] = {std::move(names).text()};
    if (send(session_.execute_literals(sql::kReadCalls, list))[0][0].as<bool>())
      statement->text.leaves = Leaves::settings;
    statement->text.calls.clear();
    statement = &session_.prepared(text);
  }
  expect_plain(statement->text.leaves);
  return *statement;
}

// Prepares the INSERT over arrays, with the types that PostgreSQL found for a single row. Called
// when a second row comes, once for each connection. False if the statement has no such form.
bool Transaction::prepare_set(const std::string& text) {
  UserStatement& statement = session_.prepared(text);
  if (statement.insert.empty()) return false;
  if (!statement.types.empty()) return true;
  // format_type with -1 gives bpchar and "bit". A cast to text would give types of length 1. Arrays
  // and composites are left out: unnest would take them apart. So are types without commas.
  const Rows found = send(
      "SELECT CASE WHEN typcategory IN ('A', 'C') OR typdelim <> ',' THEN NULL "
      "ELSE format_type(t, -1) END FROM pg_prepared_statements, unnest(parameter_types) "
      "WITH ORDINALITY AS p (t, n) JOIN pg_type ON pg_type.oid = t WHERE name = '" +
      statement.name + "' ORDER BY n");
  std::vector<std::string> types;
  std::string arrays;
  for (const Row row : found) {
    if (row[0].is_null()) {
      statement.insert.clear();
      return false;
    }
    types.push_back(row[0].text());
    arrays +=
        (arrays.empty() ? "$" : ", $") + std::to_string(types.size()) + "::" + types.back() + "[]";
  }
  try {
    session_.state_->prepare(statement.name + PendingRows::kSet,
                             statement.insert + " SELECT * FROM unnest(" + arrays + ")");
  } catch (...) {
    rethrow(session_.state_->connection, statement.insert);
  }
  statement.types = std::move(types);
  return true;
}

void Transaction::close_rows() {
  if (!rows_) return;
  append(std::move(*rows_).statement());
  rows_.reset();
}

std::size_t Transaction::pending_bytes() const {
  return pending_.size() + (rows_ ? rows_->bytes() : 0);
}

namespace {

constexpr const char* kBegin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;";

Rows rows_of(const pqxx::result& result) {
  RowsData data;
  data.affected = static_cast<std::size_t>(result.affected_rows());
  const auto columns = result.columns();
  for (pqxx::row::size_type c = 0; c < columns; ++c)
    data.columns.emplace_back(result.column_name(c));
  data.rows.reserve(static_cast<std::size_t>(result.size()));
  for (const auto& row : result) {
    auto& fields = data.rows.emplace_back();
    fields.reserve(data.columns.size());
    for (pqxx::row::size_type c = 0; c < columns; ++c) {
      if (row[c].is_null()) {
        fields.emplace_back();
      } else {
        fields.emplace_back(std::string(row[c].c_str(), row[c].size()));
      }
    }
  }
  return Rows(std::move(data));
}

}  // namespace

Rows Transaction::run(const std::string& statement) {
  close_rows();
  return send(statement);
}

std::optional<Rows> Transaction::run_unless(std::size_t rows, const std::string& statement) {
  close_rows();
  const pqxx::result result = exchange(statement);
  if (static_cast<std::size_t>(result.size()) == rows) return std::nullopt;
  return rows_of(result);
}

Rows Transaction::send(const std::string& statement) { return rows_of(exchange(statement)); }

// Sends the closed statements, then `statement`. Rows that may still grow stay here.
pqxx::result Transaction::exchange(const std::string& statement) {
  append(statement);
  if (!begun_) pending_.insert(0, kBegin);
  begun_ = true;
  return exchange_text(std::exchange(pending_, {}));
}

pqxx::result Transaction::exchange_text(std::string text) {
  try {
    if (!work_) work_ = std::make_unique<Work>(session_.state_->connection);
    return work_->exec(text);
  } catch (...) {
    rethrow_named(std::move(text));
  }
}

// Inside a catch block only. If the transaction was aborted before, names the error that did it.
void Transaction::rethrow_named(std::string statement) {
  try {
    rethrow(session_.state_->connection, std::move(statement));
  } catch (const DatabaseError& error) {
    Fault fault = error.fault();
    if (fault.kind == Fault::Kind::aborted && first_error_.empty()) throw;  // a stream is open
    if (!is_aborted(fault)) {
      if (first_error_.empty()) first_error_ = fault.text;
      throw;
    }
    fault.text =
        "the handler caught an SQL error and went on, but PostgreSQL had aborted the "
        "transaction. To go on after one, use a pqxx::subtransaction; with libpqxx 6 begin it with "
        "an exec. The error: " +
        (first_error_.empty() ? fault.text : first_error_);
    throw DatabaseError(fault, error.statement());
  }
}

Rows Transaction::run(const Statement& statement, const std::vector<Parameter>& values) {
  return run(session_.execute(statement, values));
}

Rows Transaction::run_outside(const std::string& statement) {
  return rows_of(exchange_text(statement));
}

Rows Transaction::roll_back_and_run(const std::string& statement) {
  drop_pending();
  Rows rows = run("ROLLBACK;" + statement);
  begun_ = false;
  savepoint_.clear();
  first_error_.clear();
  return rows;
}

void Transaction::commit() {
  if (!begun_ && !has_pending()) {
    done_ = true;
    return;
  }
  run_with_commit("COMMIT");
  try {
    work_->commit_ours();
  } catch (...) {
    rethrow(session_.state_->connection, "COMMIT");
  }
  done_ = true;
}

Rows Transaction::commit_and_run(const std::string& statement) {
  close_rows();
  append("COMMIT");
  savepoint_.clear();  // a new transaction begins
  return run_with_commit(kBegin + statement);
}

Rows Transaction::run_with_commit(const std::string& statement) {
  try {
    return run(statement);
  } catch (const DatabaseError& error) {
    Fault fault = error.fault();
    if (fault.kind != Fault::Kind::connection) throw;
    fault.kind = Fault::Kind::in_doubt;
    throw DatabaseError(fault, error.statement());
  }
}

void Transaction::drop_pending() noexcept {
  pending_.clear();
  rows_.reset();
}

void Transaction::rollback() noexcept {
  drop_pending();
  if (done_) return;
  done_ = true;
  try {
    // A ROLLBACK that went with another text is not sent again.
    if (work_) begun_ ? work_->abort() : work_->commit_ours();
    work_.reset();
  } catch (const std::exception&) {
    work_.reset();
    roll_back_by_hand();
  }
}

// There are two cases. If the connection is gone, so is the transaction. If the handler has called
// commit() on what it was lent, libpqxx has nothing to roll back any more, but PostgreSQL has.
void Transaction::roll_back_by_hand() noexcept {
  try {
    pqxx::nontransaction(session_.state_->connection).exec("ROLLBACK");
  } catch (const std::exception&) {
    // The connection is gone.
  }
}

void Transaction::flush() {
  close_rows();
  if (!pending_.empty() || !begun_) {
    run(pending_.empty() ? std::string("SELECT 1") : std::exchange(pending_, {}));
  }
}

pqxx::dbtransaction& Transaction::pqxx() {
  expect_plain(Leaves::settings);
  if (is_watched()) {
    flush();
  } else {
    const std::string savepoint = quoted_name("hapax " + session_.next_nonce());
    run("SAVEPOINT " + savepoint);
    savepoint_ = savepoint;
  }
  // hapax does not see what the handler runs there.
  session_.state_->left_behind = std::max(session_.state_->left_behind, Leaves::settings);
  return *work_;
}

void Transaction::refuse_ended() {
  drop_pending();
  if (!is_watched()) return;
  const std::string text = "ROLLBACK TO SAVEPOINT " + savepoint_;
  std::string said;  // by libpqxx, for example which stream is open
  try {
    try {
      exchange_text(text);
    } catch (const DatabaseError& error) {
      if (error.fault().kind != Fault::Kind::aborted) throw;
      // The handler has ended the transaction for libpqxx, perhaps not for PostgreSQL.
      const bool committed = work_->committed_by_handler();
      work_.reset();
      done_ = true;
      try {
        pqxx::nontransaction(session_.state_->connection).exec(text);
      } catch (...) {
        said = std::string(" (") + error.what() + ")";
        roll_back_by_hand();
        rethrow(session_.state_->connection, text);
      }
      roll_back_by_hand();
      if (committed) throw error;  // do_commit() kept libpqxx from sending it
    }
  } catch (const DatabaseError& error) {
    if (classify(Phase::handler, error.fault()) == FailureClass::outage) throw;
    throw DatabaseError({Fault::Kind::sql, "HX002",
                         "it failed outside of hapax's transaction: " + (error.what() + said)},
                        error.statement());
  }
}

}  // namespace hapax::store
