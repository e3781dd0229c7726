#include "store/session.hpp"

#include <libpq-fe.h>

#include <cstdio>
#include <deque>
#include <pqxx/pqxx>
#include <random>
#include <unordered_map>

namespace hapax::store {
namespace {

// Rethrows what libpqxx threw as ours. Inside a catch block only.
[[noreturn]] void rethrow(std::string statement) {
  throw DatabaseError(fault_of(std::current_exception()), std::move(statement));
}

void append_option(std::string& conninfo, const std::string& keyword, std::string_view value) {
  conninfo += keyword + "='";
  for (const char c : value) {
    if (c == '\'' || c == '\\') conninfo += '\\';
    conninfo += c;
  }
  conninfo += "' ";
}

// The user's url as keywords and values, with ours where the user has set none. libpq takes either
// a URI or keywords, so the URI is taken apart first.
std::string conninfo_of(const ConnectOptions& options) {
  char* message = nullptr;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(
      PQconninfoParse(options.url.c_str(), &message), PQconninfoFree);
  if (!parsed) {
    // libpq's message may quote the url, password included.
    PQfreemem(message);
    throw DatabaseError({Fault::Kind::connection, "",
                         "postgres.url is neither a URI (postgresql://user@host:5432/database) "
                         "nor keywords (host=… dbname=…)"});
  }
  const auto seconds = std::max<std::int64_t>(2, (options.connect_timeout.count() + 999) / 1000);
  const std::unordered_map<std::string, std::string> ours = {
      {"connect_timeout", std::to_string(seconds)}, {"keepalives_idle", "10"},
      {"keepalives_interval", "5"},                 {"keepalives_count", "3"},
      {"tcp_user_timeout", "15000"},                {"target_session_attrs", "primary"},
      {"fallback_application_name", options.application_name}};
  std::string conninfo;
  for (const PQconninfoOption* option = parsed.get(); option->keyword != nullptr; ++option) {
    const auto found = ours.find(option->keyword);
    if (option->val != nullptr) {
      append_option(conninfo, option->keyword, option->val);
    } else if (found != ours.end()) {
      append_option(conninfo, option->keyword, found->second);
    }
  }
  return conninfo;
}

std::string settings_of(const ConnectOptions& options) {
  const auto ms = [](std::chrono::milliseconds value) { return std::to_string(value.count()); };
  return "SET client_encoding TO 'UTF8'; SET standard_conforming_strings TO on;"
         "SET client_min_messages TO error;"  // libpqxx prints notices to stderr
         "SET default_transaction_read_only TO on;"
         "SET default_transaction_isolation TO 'read committed';"
         "SET lock_timeout TO " + ms(options.lock_timeout) +
         "; SET statement_timeout TO " + ms(options.statement_timeout) +
         "; SET idle_in_transaction_session_timeout TO " + ms(options.idle_in_transaction_timeout);
}

// What a handler's statement may leave behind in its session.
enum class Leaves { nothing, settings, prepared_statements };

// By the text alone, once for each distinct one: plain queries leave nothing, unless they call the
// functions that do. Whatever is not recognised as plain counts as leaving something.
Leaves leaves(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  const std::size_t begin = lower.find_first_not_of(" \t\r\n(");
  if (begin == std::string::npos) return Leaves::nothing;
  const std::string word = lower.substr(begin, lower.find_first_not_of("abcdefghijklmnopqrstuvwxyz",
                                                                       begin) - begin);
  for (const char* spoiling : {"prepare", "deallocate", "discard"})
    if (word == spoiling) return Leaves::prepared_statements;
  bool plain = false;
  for (const char* query : {"select", "insert", "update", "delete", "with", "values", "merge"})
    plain = plain || word == query;
  for (const char* suspect : {"set_config", "advisory", "into temp"})
    plain = plain && lower.find(suspect) == std::string::npos;
  return plain ? Leaves::nothing : Leaves::settings;
}

constexpr const char* kClean =
    "UNLISTEN *; SELECT pg_advisory_unlock_all(); CLOSE ALL; DISCARD TEMP;"
    "RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL;";

// E'…' reads the same whatever standard_conforming_strings a handler has left behind.
void append_quoted(std::string& text, std::string_view value) {
  if (value.find('\0') != std::string_view::npos)
    throw DatabaseError({Fault::Kind::sql, "22021",
                         "a parameter holds a NUL byte, which PostgreSQL text cannot; pass bytes "
                         "with hapax::Parameter::bytes to a bytea"});
  text += "E'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') text += c;
    text += c;
  }
  text += '\'';
}

}  // namespace

struct Session::State {
  explicit State(const std::string& conninfo) : connection(conninfo) {}

  void prepare(const std::string& name, const std::string& text) {
    connection.prepare(name, text);
#if PQXX_VERSION_MAJOR < 7
    connection.prepare_now(name);  // 6 is lazy, and a joined EXECUTE would not find it
#endif
  }

  pqxx::connection connection;
  std::unordered_map<const Statement*, bool> prepared;
  struct UserStatement {
    std::string name;
    Leaves leaves;
  };
  std::unordered_map<std::string, UserStatement> user_statements;  // by text
  std::deque<std::string> user_order;                            // texts, oldest first
  std::uint64_t user_count = 0;
  std::string settings;  // to be set again after RESET ALL
  Leaves left_behind = Leaves::nothing;
  std::string nonce_prefix;
  std::uint64_t nonce_count = 0;
};

Session::Session(const ConnectOptions& options) {
  const std::string conninfo = conninfo_of(options);
  try {
    state_ = std::make_unique<State>(conninfo);
#if PQXX_VERSION_MAJOR < 7
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    // Reconnecting in silence would run a statement on a new session, in autocommit.
    state_->connection.inhibit_reactivation(true);
#pragma GCC diagnostic pop
#endif
    state_->settings = settings_of(options);
    pqxx::nontransaction work(state_->connection);
    work.exec(state_->settings);
  } catch (...) {
    Fault fault = fault_of(std::current_exception());
    if (fault.kind == Fault::Kind::other) fault.kind = Fault::Kind::connection;
    throw DatabaseError(fault, "connect");
  }
  std::random_device random;
  char prefix[32];
  std::snprintf(prefix, sizeof prefix, "%08x%08x-", random(), random());
  state_->nonce_prefix = prefix;
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

namespace {

std::string execute_text(const std::string& name, const std::vector<Parameter>& values) {
  std::string text = "EXECUTE " + name;
  const char* separator = "(";
  for (const Parameter& value : values) {
    text += separator;
    separator = ",";
    if (value.text()) {
      append_quoted(text, *value.text());
    } else {
      text += "NULL";
    }
  }
  if (!values.empty()) text += ')';
  return text;
}

}  // namespace

std::string Session::execute(const Statement& statement, const std::vector<Parameter>& values) {
  bool& prepared = state_->prepared[&statement];
  if (!prepared) {
    try {
      state_->prepare(statement.name, statement.text);
    } catch (...) {
      rethrow(statement.text);
    }
    prepared = true;
  }
  return execute_text(statement.name, values);
}

std::string Session::execute(std::string_view text, const std::vector<Parameter>& values) {
  auto& known = state_->user_statements;
  auto found = known.find(std::string(text));
  if (found == known.end()) {
    const std::string name = "hapax_user_" + std::to_string(++state_->user_count);
    try {
      if (known.size() >= kMaxUserStatements) {
        state_->connection.unprepare(known.at(state_->user_order.front()).name);
        known.erase(state_->user_order.front());
        state_->user_order.pop_front();
      }
      state_->prepare(name, std::string(text));
    } catch (...) {
      rethrow(std::string(text));
    }
    found = known.emplace(std::string(text), State::UserStatement{name, leaves(text)}).first;
    state_->user_order.emplace_back(text);
  }
  state_->left_behind = std::max(state_->left_behind, found->second.leaves);
  return execute_text(found->second.name, values);
}

bool Session::clean() {
  const Leaves left = std::exchange(state_->left_behind, Leaves::nothing);
  if (left == Leaves::prepared_statements) return false;
  if (left == Leaves::nothing) return true;
  try {
    pqxx::nontransaction work(state_->connection);
    work.exec(kClean + state_->settings);
    return true;
  } catch (...) {
    rethrow("cleaning the session");
  }
}

std::string Session::next_nonce() {
  return state_->nonce_prefix + std::to_string(++state_->nonce_count);
}

std::string Session::pqxx_version() { return PQXX_VERSION; }

std::string Session::libpq_version() {
  const int version = PQlibVersion();  // 150018: 15.18
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000);
}

// Empty begin and commit: the texts that hapax sends hold BEGIN and COMMIT themselves.
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
#else
  explicit Work(pqxx::connection& connection)
      : pqxx::dbtransaction(connection, "hapax", std::make_shared<std::string>("ROLLBACK")) {
    register_transaction();
  }
  ~Work() override { close(); }

 private:
#endif
  void do_commit() override {}
};

Transaction::Transaction(Session& session) : session_(session) {}

Transaction::~Transaction() { rollback(); }

void Transaction::add(std::string statement) {
  if (!pending_.empty()) pending_ += ';';
  pending_ += statement;
}

namespace {

Rows rows_of(const pqxx::result& result) {
  RowsData data;
  data.affected = static_cast<std::size_t>(result.affected_rows());
  const auto columns = result.columns();
  for (pqxx::row::size_type c = 0; c < columns; ++c) data.columns.emplace_back(result.column_name(c));
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

Rows Transaction::run(std::string statement) {
  add(std::move(statement));
  std::string text = std::exchange(pending_, {});
  try {
    if (!work_) work_ = std::make_unique<Work>(session_.state_->connection);
    if (!begun_) {
      text.insert(0, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;");
      begun_ = true;
    }
    return rows_of(work_->exec(text));
  } catch (...) {
    rethrow(std::move(text));
  }
}

Rows Transaction::run(const Statement& statement, const std::vector<Parameter>& values) {
  return run(session_.execute(statement, values));
}

void Transaction::commit() {
  if (!begun_ && pending_.empty()) {
    done_ = true;
    return;
  }
  try {
    run("COMMIT");
    work_->commit();
  } catch (const DatabaseError& error) {
    Fault fault = error.fault();
    if (fault.kind != Fault::Kind::connection) throw;
    fault.kind = Fault::Kind::in_doubt;
    throw DatabaseError(fault, error.statement());
  } catch (...) {
    rethrow("COMMIT");
  }
  done_ = true;
}

void Transaction::rollback() noexcept {
  pending_.clear();
  if (done_) return;
  done_ = true;
  try {
    if (work_) work_->abort();
  } catch (const std::exception&) {
    // The connection is gone, and with it the transaction.
  }
  work_.reset();
}

void Transaction::flush() {
  if (!pending_.empty() || !begun_) {
    std::string text = std::exchange(pending_, {});
    run(text.empty() ? std::string("SELECT 1") : std::move(text));
  }
}

pqxx::dbtransaction& Transaction::pqxx() {
  flush();
  // What runs there is not seen here.
  session_.state_->left_behind = std::max(session_.state_->left_behind, Leaves::settings);
  return *work_;
}

}  // namespace hapax::store
