#include "store/session.hpp"

#include <libpq-fe.h>
#include <sys/socket.h>

#include <cstdio>
#include <random>
#include <regex>

#include "store/connect_error.hpp"
#include "store/conninfo.hpp"
#include "store/pending_rows.hpp"
#include "store/quote.hpp"
#include "store/session_state.hpp"
#include "store/transport.hpp"

namespace hapax::store {
namespace {

// The user's url, with hapax's settings for all that it leaves open.
std::string session_conninfo(const ConnectOptions& options) {
  const auto seconds = std::max<std::int64_t>(2, (options.connect_timeout.count() + 999) / 1000);
  ConnectKeywords ours = {{"connect_timeout", std::to_string(seconds)},
                          {"keepalives_idle", "10"},
                          {"keepalives_interval", "5"},
                          {"keepalives_count", "3"},
                          {"tcp_user_timeout", "15000"},
                          {"target_session_attrs", "primary"},
                          {"fallback_application_name", options.application_name}};
  if (const auto sslmode = transport_of(options.url).sslmode; !sslmode.empty())
    ours["sslmode"] = sslmode;
  return conninfo_of(options.url, ours);
}

std::string settings_of(const ConnectOptions& options) {
  const auto ms = [](std::chrono::milliseconds value) { return std::to_string(value.count()); };
  return "SET client_encoding TO 'UTF8'; SET standard_conforming_strings TO on;"
         "SET client_min_messages TO error;"  // libpqxx prints notices to stderr
         "SET array_nulls TO on;"             // rows that join go out as arrays
         "SET default_transaction_read_only TO on;"
         "SET default_transaction_isolation TO 'read committed';"
         "SET lock_timeout TO " +
         ms(options.lock_timeout) + "; SET statement_timeout TO " + ms(options.statement_timeout) +
         "; SET idle_in_transaction_session_timeout TO " + ms(options.idle_in_transaction_timeout);
}

// Another role may have put an operator or a function into `public`. If its types fit better than
// those of PostgreSQL's own, it would run with the rights of this session.
constexpr const char* kOwnNamesOnly = "SET search_path TO pg_catalog, pg_temp;";

constexpr const char* kClean =
    "RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL; UNLISTEN *;"
    "SELECT pg_catalog.pg_advisory_unlock_all(); CLOSE ALL; DISCARD TEMP; DISCARD SEQUENCES;";

// Added to that text: asks whether there are prepared statements that are not hapax's.
constexpr const char* kOthersStatements =
    ";SELECT EXISTS (SELECT FROM pg_catalog.pg_prepared_statements "
    "WHERE left(name, 6) <> 'hapax_')";

// In place of a COPY whose rows hapax would have to send or read. PostgreSQL raises the error, so
// that it aborts the transaction, as any other error does.
constexpr const char* kRefuseCopy =
    "DO $$ BEGIN RAISE 'COPY FROM STDIN and TO STDOUT need a stream of libpqxx on "
    "context.pqxx()' USING ERRCODE = '42601'; END $$";

bool copies_through_client(std::string_view text) {
  static const std::regex kCopy(R"(\s*copy\b[\s\S]*\b(from|to)\s+(stdin|stdout)\b[\s\S]*)",
                                std::regex::icase | std::regex::optimize);
  constexpr std::size_t kLongest = 4096;  // std::regex needs stack for each byte
  return text.size() <= kLongest && std::regex_match(text.begin(), text.end(), kCopy);
}

// Behind the settings: whether epochs stand in a table of their own.
constexpr const char* kHasEpochs =
    ";SELECT EXISTS (SELECT FROM pg_catalog.pg_class c "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'hapax' "
    "AND c.relname = 'epochs' AND pg_catalog.has_table_privilege(c.oid, 'SELECT'))";

// On a schema before 16 hapax.checkpoints has them. It goes on having them, so a session may
// outlive the migration.
std::string with_epochs_of_checkpoints(std::string text) {
  constexpr std::string_view kApart = "hapax.epochs";
  for (std::size_t at = 0; (at = text.find(kApart, at)) != std::string::npos;)
    text.replace(at, kApart.size(), "hapax.checkpoints");
  return text;
}

}  // namespace

Session::Session(const ConnectOptions& options) {
  const std::string conninfo = session_conninfo(options);
  try {
    state_ = std::make_unique<State>(conninfo);
#if PQXX_VERSION_MAJOR < 7
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    // If libpqxx reconnected by itself, a statement would run in a new session, in autocommit.
    state_->connection.inhibit_reactivation(true);
#pragma GCC diagnostic pop
#endif
    state_->settings = settings_of(options);
    state_->lock_timeout = std::to_string(options.lock_timeout.count());
    state_->statement_timeout = options.statement_timeout;
    pqxx::nontransaction work(state_->connection);
    state_->has_epochs = work.exec(kOwnNamesOnly + state_->settings + kHasEpochs)[0][0].as<bool>();
  } catch (...) {
    Fault fault = fault_of(std::current_exception());
    if (fault.kind == Fault::Kind::other) fault.kind = Fault::Kind::connection;
    if (fault.kind == Fault::Kind::connection) fault.text = explain_connect_error(fault.text);
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

bool Session::prepare(const Statement& statement) {
  bool& prepared = state_->prepared[&statement];
  if (prepared) return false;
  try {
    state_->prepare(statement.name, state_->has_epochs
                                        ? statement.text
                                        : with_epochs_of_checkpoints(statement.text));
  } catch (...) {
    rethrow(state_->connection, statement.text);
  }
  prepared = true;
  return true;
}

std::string Session::execute(const Statement& statement, const std::vector<Parameter>& values) {
  prepare(statement);
  return execute_text(statement.name, values);
}

std::string Session::execute_literals(const Statement& statement,
                                      std::span<const std::string> literals) {
  prepare(statement);
  return store::execute_literals(statement.name, literals);
}

bool Session::knows(std::string_view text) const {
  return state_->user_statements.contains(std::string(text));
}

UserStatement& Session::prepared(std::string_view text) {
  auto& known = state_->user_statements;
  auto found = known.find(std::string(text));
  if (found == known.end()) {
    UserStatement statement;
    // Named by its text, because behind a pooler a number could name another session's statement.
    statement.name = "hapax_user_" + std::to_string(std::hash<std::string_view>()(text));
    try {
      if (known.size() >= kMaxUserStatements) {
        const UserStatement& oldest = known.at(state_->user_order.front());
        state_->connection.unprepare(oldest.name);
        if (!oldest.types.empty()) state_->connection.unprepare(oldest.name + PendingRows::kSet);
        known.erase(state_->user_order.front());
        state_->user_order.pop_front();
      }
      // PostgreSQL would get, and run, what stands before a NUL byte.
      const bool has_nul = text.find('\0') != std::string_view::npos;
      state_->prepare(statement.name, has_nul                       ? "SELECT E'\\x00'"
                                      : copies_through_client(text) ? kRefuseCopy
                                                                    : std::string(text));
      statement.insert = plain_insert(text).value_or("");
    } catch (...) {
      rethrow(state_->connection, std::string(text));
    }
    statement.text = read_user_text(text);
    if (!statement.insert.empty()) statement.text.calls.clear();  // values only
    found = known.emplace(std::string(text), std::move(statement)).first;
    state_->user_order.emplace_back(text);
  }
  state_->left_behind = std::max(state_->left_behind, found->second.text.leaves);
  return found->second;
}

std::string Session::execute(std::string_view text, const std::vector<Parameter>& values) {
  return execute_text(prepared(text).name, values);
}

bool Session::is_clean() const { return state_->left_behind == Leaves::nothing; }

bool Session::clean() {
  const Leaves left = std::exchange(state_->left_behind, Leaves::nothing);
  if (left == Leaves::prepared_statements) return false;
  if (left == Leaves::nothing) return true;
  try {
    pqxx::nontransaction work(state_->connection);
    return !work.exec(kClean + state_->settings + kOthersStatements)[0][0].as<bool>();
  } catch (...) {
    rethrow(state_->connection, "cleaning the session");
  }
}

void Session::serve_handlers() {
  try {
    pqxx::nontransaction(state_->connection).exec("RESET search_path");
  } catch (...) {
    throw DatabaseError(fault_of(std::current_exception()), "RESET search_path");
  }
}

const std::string& Session::lock_timeout() const { return state_->lock_timeout; }

std::chrono::milliseconds Session::statement_timeout() const { return state_->statement_timeout; }

void Session::cut() noexcept { ::shutdown(state_->connection.sock(), SHUT_RDWR); }

std::string Session::next_nonce() {
  return state_->nonce_prefix + std::to_string(++state_->nonce_count);
}

std::string Session::pqxx_version() { return PQXX_VERSION; }

std::string Session::libpq_version() {
  const int version = PQlibVersion();  // 150018: 15.18
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000);
}

}  // namespace hapax::store
