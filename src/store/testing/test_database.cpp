#include "store/testing/test_database.hpp"

#include <nlohmann/json.hpp>

#include "sql_statements.hpp"
#include "store/operator/roles.hpp"
#include "store/quote.hpp"
#include "store/session_state.hpp"
#include "store/transaction.hpp"

namespace hapax::store {
namespace {

// Deferred: it raises at COMMIT, behind everything that the handler wrote.
constexpr const char* kCommitFaults =
    "CREATE SCHEMA hapax_testing;"
    "CREATE TABLE hapax_testing.commit_faults (sqlstate text);"
    "CREATE FUNCTION hapax_testing.raise() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "  IF NEW.sqlstate = '57P01' THEN"
    "    PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60);"
    "  END IF;"
    "  RAISE EXCEPTION 'injected by the test' USING ERRCODE = NEW.sqlstate; END $$;"
    "CREATE CONSTRAINT TRIGGER raise AFTER INSERT ON hapax_testing.commit_faults DEFERRABLE "
    "  INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hapax_testing.raise();";

constexpr const char* kSave = R"(
DROP SCHEMA IF EXISTS hapax_saved CASCADE;
CREATE SCHEMA hapax_saved;
CREATE VIEW hapax_saved.relations AS
  SELECT c.oid, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'hapax_testing', 'hapax_saved')
    AND n.nspname NOT LIKE 'pg\_t%';
CREATE TABLE hapax_saved.tables AS
  SELECT r.oid, format('hapax_saved.t%s', r.oid) AS copy,
         (SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
          WHERE attrelid = r.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS columns
  FROM hapax_saved.relations r WHERE r.relkind = 'r';
CREATE TABLE hapax_saved.triggers AS
  SELECT tgrelid AS relation, tgname AS name,
         CASE tgenabled WHEN 'A' THEN 'ALWAYS' ELSE 'REPLICA' END AS fires
  FROM pg_trigger JOIN hapax_saved.relations r ON r.oid = tgrelid
  WHERE tgenabled IN ('A', 'R');
CREATE TABLE hapax_saved.sequences AS
  SELECT r.oid, s.start_value, pg_sequence_last_value(r.oid) AS last_value
  FROM hapax_saved.relations r JOIN pg_sequences s
    ON format('%I.%I', s.schemaname, s.sequencename)::regclass = r.oid;
DO $$ DECLARE t record; BEGIN
  FOR t IN SELECT * FROM hapax_saved.tables LOOP
    EXECUTE format('CREATE UNLOGGED TABLE %s AS SELECT %s FROM ONLY %s',
                   t.copy, t.columns, t.oid::regclass);
  END LOOP;
END $$)";

// As a replica: neither triggers nor foreign keys mind the order. Triggers that fire there, too,
// are off meanwhile. DELETE: quicker than TRUNCATE if there is little.
constexpr const char* kRestore = R"(
SET LOCAL session_replication_role = replica;
DO $$ DECLARE t record; BEGIN
  FOR t IN SELECT oid FROM hapax_saved.relations r WHERE r.relkind = 'r'
             AND NOT EXISTS (SELECT FROM hapax_saved.tables s WHERE s.oid = r.oid) LOOP
    EXECUTE format('DROP TABLE %s CASCADE', t.oid::regclass);
  END LOOP;
  FOR t IN SELECT * FROM hapax_saved.triggers LOOP
    EXECUTE format('ALTER TABLE %s DISABLE TRIGGER %I', t.relation::regclass, t.name);
  END LOOP;
  FOR t IN SELECT * FROM hapax_saved.tables LOOP
    EXECUTE format('DELETE FROM ONLY %s', t.oid::regclass);
    EXECUTE format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM %s',
                   t.oid::regclass, t.columns, t.copy);
  END LOOP;
  FOR t IN SELECT * FROM hapax_saved.triggers LOOP
    EXECUTE format('ALTER TABLE %s ENABLE %s TRIGGER %I', t.relation::regclass, t.fires, t.name);
  END LOOP;
  PERFORM setval(oid, coalesce(last_value, start_value), last_value IS NOT NULL)
  FROM hapax_saved.sequences;
END $$)";

constexpr const char* kUserSchemas =
    "SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname NOT IN ('hapax', "
    "'hapax_testing', 'information_schema') AND nspname NOT LIKE 'pg\\_%'";

constexpr const char* kOtherRoles =
    "SELECT rolname FROM pg_roles WHERE NOT rolsuper AND rolname <> $1 AND rolname NOT LIKE "
    "'pg\\_%'";

constexpr const char* kHasRight = "SELECT has_table_privilege($1::name, $2::regclass, $3)";

// What hapax itself keeps of an operation and a handler decides.
constexpr const char* kKeys =
    "SELECT json_build_object('key', key, 'scope', scope, 'tenant', tenant, 'status', status, "
    "'result', result::text) FROM hapax.idempotency_keys";

// What consumers get. Bytes that are no text are shown as PostgreSQL escapes them.
constexpr const char* kOutbox =
    "SELECT json_build_object('place', (row_number() OVER (ORDER BY id))::text, 'topic', topic, "
    "'key', encode(record_key, 'escape'), 'payload', encode(payload, 'escape'), "
    "'headers', headers::text, 'idempotency_key', idempotency_key) FROM hapax.outbox";

// It may have transactions of its own.
void run_file(Session& owner, const std::string& sql) {
  Transaction outside(owner);
  outside.run_outside("SET default_transaction_read_only TO off");
  outside.run_outside(sql);
}

TableRows rows_of(const Rows& objects) {
  TableRows table;
  for (const Row row : objects) {
    auto& values = table.rows.emplace_back();
    const auto object = row[0].as<nlohmann::json>();
    for (const auto& [column, value] : object.items())
      values[column] = value.is_null() ? std::nullopt : std::optional(value.get<std::string>());
  }
  return table;
}

}  // namespace

struct TestServer::Connection {
  explicit Connection(const std::string& url) : connection(url) {}
  pqxx::connection connection;
};

TestServer::TestServer(const std::string& url) : connection_(std::make_unique<Connection>(url)) {
  run("SET client_min_messages TO error");
}

TestServer::~TestServer() = default;

void TestServer::run(const std::string& sql) {
  try {
    pqxx::nontransaction(connection_->connection).exec(sql);
  } catch (...) {
    rethrow(connection_->connection, sql);
  }
}

void TestServer::copy(const std::string& name, const std::string& original) {
  run("CREATE DATABASE " + name + " TEMPLATE " + original);
}

void TestServer::drop(const std::string& name) {
  run("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)");
}

std::set<std::string> TestServer::roles() {
  std::set<std::string> names;
  try {
    for (const auto& row : pqxx::nontransaction(connection_->connection)
                               .exec("SELECT quote_ident(rolname) FROM pg_roles"))
      names.insert(row[0].c_str());
  } catch (...) {
    rethrow(connection_->connection, "reading roles");
  }
  return names;
}

void TestServer::drop_roles_but(const std::set<std::string>& kept) {
  std::string made;
  for (const std::string& name : roles())
    if (!kept.contains(name)) made += (made.empty() ? "" : ", ") + name;
  if (!made.empty()) run("DROP OWNED BY " + made + "; DROP ROLE " + made);
}

void make_test_role(Session& owner, const std::string& role) {
  {
    Transaction transaction(owner);
    transaction.run("CREATE ROLE " + role + " LOGIN");
    transaction.run(kCommitFaults);
    transaction.run("GRANT USAGE ON SCHEMA hapax_testing TO " + role +
                    "; GRANT INSERT ON hapax_testing.commit_faults TO " + role);
    transaction.commit();
  }
  grant_worker(owner, role);
}

void run_schema(Session& owner, const std::string& sql, const std::string& role) {
  run_file(owner, sql);
  Transaction transaction(owner);
  for (const Row schema : transaction.run(kUserSchemas)) {
    const std::string name = schema[0].text();
    transaction.run("GRANT USAGE ON SCHEMA " + name + " TO " + role +
                    "; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + name +
                    " TO " + role + "; GRANT USAGE ON ALL SEQUENCES IN SCHEMA " + name + " TO " +
                    role);
  }
  transaction.commit();
}

std::vector<std::string> restrict_role(Session& owner, const std::string& role,
                                       const TableRights& rights) {
  Transaction transaction(owner);
  std::vector<std::string> absent;
  for (const auto& [table, granted] : rights)
    if (transaction.query("SELECT to_regclass($1)", {table})[0][0].is_null())
      absent.push_back(table);
  if (!absent.empty()) return absent;
  for (const Row schema : transaction.run(kUserSchemas))
    transaction.run("REVOKE ALL ON ALL TABLES IN SCHEMA " + schema[0].text() + " FROM " + role);
  for (const auto& [table, granted] : rights)
    for (const std::string& right : granted)
      transaction.run("GRANT " + right + " ON " + table + " TO " + role);
  transaction.commit();
  return absent;
}

std::vector<std::string> ungranted(Session& owner, const std::string& sql, const std::string& role,
                                   const TableRights& rights) {
  run_file(owner, sql);
  Transaction transaction(owner);
  const auto lacking = [&](const std::string& other) {
    std::vector<std::string> missing;
    for (const auto& [table, granted] : rights)
      for (const std::string& right : granted)
        if (!transaction.query(kHasRight, {other, table, right})[0][0].as<bool>())
          missing.push_back(right + " on " + table);
    return missing;
  };
  std::vector<std::string> fewest = lacking("public");
  for (const Row other : transaction.query(kOtherRoles, {role}))
    if (auto missing = lacking(other[0].text()); missing.size() < fewest.size())
      fewest = std::move(missing);
  return fewest;
}

std::map<std::string, TableRows> read_user_tables(Session& owner) {
  Transaction transaction(owner);
  std::map<std::string, TableRows> tables;
  for (const Row table : transaction.run(sql::kReadUserTables, {})) {
    const std::string name = table[0].text();
    TableRows& rows = tables[name] = rows_of(transaction.run(
        // `.*`: a column may be called as the alias.
        "SELECT (SELECT coalesce(json_object_agg(key, value), '{}') FROM "
        "jsonb_each_text(to_jsonb(t.*))) FROM " +
        name + " t"));
    rows.drawn = table[1].as<nlohmann::json>().get<std::map<std::string, std::string>>();
    rows.times = table[2].as<nlohmann::json>().get<std::set<std::string>>();
  }
  tables[kKeysTable] = rows_of(transaction.run(kKeys));
  tables[kOutboxTable] = rows_of(transaction.run(kOutbox));
  return tables;
}

std::vector<PublishedRow> read_published(Session& owner) {
  Transaction transaction(owner);
  std::vector<PublishedRow> published;
  for (const Row row : transaction.run(
           "SELECT topic, encode(record_key, 'hex'), encode(payload, 'hex'), headers::text, "
           "idempotency_key FROM hapax.outbox ORDER BY id"))
    published.push_back(
        {row[0].text(), bytes_of_hex(row[1]), bytes_of_hex(row[2]), row[3].text(), row[4].text()});
  return published;
}

void save_tables(Session& owner) {
  Transaction transaction(owner);
  transaction.run(kSave);
  transaction.commit();
}

void restore_tables(Session& owner) {
  Transaction transaction(owner);
  transaction.run(kRestore);
  transaction.commit();
}

bool is_waiting(Session& owner) {
  Transaction transaction(owner);
  return transaction
      .run(
          "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND "
          "wait_event_type = 'Lock')")[0][0]
      .as<bool>();
}

int count_other_sessions(Session& owner, const std::string& application_name) {
  Transaction transaction(owner);
  return transaction.run(sql::kCountOtherSessions, {application_name})[0][0].as<int>();
}

void pass_time(Session& owner, std::chrono::milliseconds time) {
  Transaction transaction(owner);
  transaction.run(sql::kPassTime, {static_cast<double>(time.count()) / 1000});
  transaction.commit();
}

std::vector<std::string> session_state(Session& session) {
  Transaction transaction(session);
  std::vector<std::string> lines;
  for (const Row row : transaction.run(sql::kReadSessionState, {})) lines.push_back(row[0].text());
  return lines;
}

}  // namespace hapax::store
