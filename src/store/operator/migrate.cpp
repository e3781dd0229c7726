#include "store/operator/migrate.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "key/sha256.hpp"
#include "sql_statements.hpp"
#include "store/transaction.hpp"

namespace hapax::store {
namespace {

// A migration, or another run of it, may take long. Only the locks of tables, which workers need,
// are waited for no longer than lock_timeout.
constexpr const char* kTakesItsTime = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0";

// Any constant will do; this one is "hapax" in ASCII. Held by the transaction, so that a pooler
// cannot leave it behind.
constexpr const char* kTryLock = "SELECT pg_try_advisory_xact_lock(448345206136)";
constexpr const char* kLock = "SELECT pg_advisory_xact_lock(448345206136)";
// Its upper half is in classid. Another role's program and time are not shown to every role.
constexpr const char* kReadHolder =
    "SELECT concat_ws(', ', 'pid ' || l.pid, 'role ' || a.usename,"
    "   'program ' || quote_literal(nullif(a.application_name, '')), 'since ' || a.xact_start)"
    " FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
    "   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    "   AND (l.classid::bigint << 32 | l.objid::bigint) = 448345206136";

// Waits for another run to end.
void take_turn(Transaction& transaction, const Waits& waits) {
  transaction.run(kTakesItsTime);
  if (!transaction.run(kTryLock)[0][0].as<bool>()) {
    const Rows holder = transaction.run(kReadHolder);
    if (waits && !holder.empty()) waits(holder[0][0].text());
    transaction.run(kLock);
  }
  transaction.run("SET LOCAL lock_timeout = " + transaction.session().lock_timeout());
}

constexpr const char* kCreateTable =
    "CREATE SCHEMA IF NOT EXISTS hapax;"
    "CREATE TABLE IF NOT EXISTS hapax.schema_migrations ("
    "  number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,"
    "  applied_at timestamptz NOT NULL DEFAULT now())";

// A superuser may run it. The owner of the tables then owns the new ones, too, because its rights
// are not granted by the migrations.
constexpr const char* kAsOwner =
    "SELECT set_config('role', pg_get_userbyid(relowner), true) FROM pg_class"
    " WHERE oid = to_regclass('hapax.idempotency_keys') AND relowner <> current_user::regrole;\n";
constexpr const char* kAsCaller = "SET LOCAL ROLE NONE;\n";

std::string checksum(const Migration& migration) { return key::hex(key::sha256(migration.up)); }

struct Applied {
  std::string name, checksum, at;
};

std::map<int, Applied> read_applied(Transaction& transaction) {
  std::map<int, Applied> applied;
  if (transaction.run("SELECT to_regclass('hapax.schema_migrations')")[0][0].is_null())
    return applied;
  const Rows rows = transaction.run(
      "SELECT number, name, checksum, applied_at FROM hapax.schema_migrations ORDER BY number");
  for (const Row row : rows)
    applied[row[0].as<int>()] = {
        .name = row[1].text(), .checksum = row[2].text(), .at = row[3].text()};
  return applied;
}

void refuse_changed(const Migration& migration, const Applied& applied) {
  if (applied.checksum == checksum(migration)) return;
  throw std::runtime_error("migration " + std::to_string(migration.number) + " (" + migration.name +
                           ") was applied on " + applied.at +
                           " with another text than this binary carries; run the hapax that "
                           "applied it, or restore hapax.schema_migrations");
}

// One migration in one transaction. False when it is there already.
bool apply(Session& session, const Migration& migration, const Waits& waits) {
  Transaction transaction(session);
  take_turn(transaction, waits);
  transaction.run(kCreateTable);
  const auto applied = read_applied(transaction);
  if (const auto found = applied.find(migration.number); found != applied.end()) {
    refuse_changed(migration, found->second);
    return false;
  }
  transaction.run(kAsOwner + std::string(migration.up) + kAsCaller);
  transaction.run("INSERT INTO hapax.schema_migrations (number, name, checksum) VALUES (" +
                  std::to_string(migration.number) + ", '" + migration.name + "', '" +
                  checksum(migration) + "')");
  transaction.commit();
  return true;
}

bool take_back(Session& session, const Migration& migration, const Waits& waits) {
  Transaction transaction(session);
  take_turn(transaction, waits);
  const auto applied = read_applied(transaction);
  if (!applied.empty() && applied.rbegin()->first > migration.number)
    throw std::runtime_error("migration " + std::to_string(applied.rbegin()->first) + " (" +
                             applied.rbegin()->second.name + ") " +
                             (applied.rbegin()->first > kSchema
                                  ? "is newer than this binary and builds on what it would take "
                                    "back; run the hapax that applied it"
                                  : "was applied meanwhile and builds on what would be taken back "
                                    "next; is another operator migrating?"));
  const auto found = applied.find(migration.number);
  if (found == applied.end()) return false;
  refuse_changed(migration, found->second);
  transaction.run(migration.down);
  transaction.run("DELETE FROM hapax.schema_migrations WHERE number = " +
                  std::to_string(migration.number));
  transaction.commit();
  return true;
}

}  // namespace

std::vector<MigrationState> migration_states(Session& session) {
  Transaction transaction(session);
  auto applied = read_applied(transaction);
  std::vector<MigrationState> states;
  for (const Migration& migration : sql::kMigrations) {
    MigrationState state{migration.number, migration.name, {}, false, false};
    if (const auto found = applied.find(migration.number); found != applied.end()) {
      state.applied_at = found->second.at;
      state.changed = found->second.checksum != checksum(migration);
      applied.erase(found);
    }
    states.push_back(std::move(state));
  }
  for (const auto& [number, row] : applied)
    states.push_back({number, row.name, row.at, false, true});
  return states;
}

std::vector<int> migrate_up(Session& session, const std::function<bool()>& tries_again,
                            const Waits& waits) {
  std::vector<int> done;
  for (const Migration& migration : sql::kMigrations) {
    bool is_there = false;
    while (!is_there) {
      try {
        if (apply(session, migration, waits)) done.push_back(migration.number);
        is_there = true;
      } catch (const DatabaseError& error) {
        if (error.sqlstate() != "55P03" || !tries_again || !tries_again()) throw;
      }
    }
  }
  return done;
}

std::vector<int> migrate_down(Session& session, int target, const Waits& waits) {
  std::vector<int> done;
  for (auto migration = std::rbegin(sql::kMigrations); migration != std::rend(sql::kMigrations);
       ++migration)
    if (migration->number > target && take_back(session, *migration, waits))
      done.push_back(migration->number);
  return done;
}

// A role's default may be repeatable read. Then a migration that waits for a lock would not see
// what was committed meanwhile.
std::string migration_text() {
  std::string text = "BEGIN;\n" + std::string(kCreateTable) + ";\nCOMMIT;\n";
  for (const Migration& migration : sql::kMigrations)
    text += "\n-- " + std::to_string(migration.number) + " " + migration.name +
            "\nBEGIN ISOLATION LEVEL READ COMMITTED;\n" +
            "SET LOCAL search_path TO pg_catalog, pg_temp;\n" + kAsOwner + migration.up +
            kAsCaller + "INSERT INTO hapax.schema_migrations (number, name, checksum)\n  VALUES (" +
            std::to_string(migration.number) + ", '" + migration.name + "', '" +
            checksum(migration) + "');\nCOMMIT;\n";
  return text;
}

std::optional<std::string> schema_problem(Session& session, int oldest) {
  Transaction transaction(session);
  const std::string encoding = transaction.run("SHOW server_encoding")[0][0].text();
  if (encoding != "UTF8" && encoding != "SQL_ASCII")
    return "the database's encoding is " + encoding +
           ": hapax keeps text as UTF-8; use a database made WITH ENCODING 'UTF8'";
  const auto applied = read_applied(transaction);
  const int found = applied.empty() ? 0 : applied.rbegin()->first;
  if (found == 0) return "the schema hapax is not there: run `hapax migrate up`";
  for (int number = 1; number < found; ++number)
    if (!applied.contains(number))
      return "migration " + std::to_string(number) +
             " is missing, and newer ones are there: run `hapax migrate up`";
  if (found < oldest)
    return "the schema is at " + std::to_string(found) + ", this needs at least " +
           std::to_string(oldest) + ": run `hapax migrate up`";
  if (found > kSchema + 1)
    return "the schema is at " + std::to_string(found) + ", this worker knows " +
           std::to_string(kSchema) + " and can run on one newer: install a newer hapax";
  return std::nullopt;
}

}  // namespace hapax::store
