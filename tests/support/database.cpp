#include "support/database.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <pqxx/pqxx>
#include <stdexcept>
#include <thread>

#include "store/operator/migrate.hpp"

namespace hapax::test {
namespace {

constexpr const char* kTemplate = "hapax_template";
constexpr const char* kWorker = "hapax_worker";

store::ConnectOptions options_for(const std::string& url) {
  store::ConnectOptions options;
  options.url = url;
  options.application_name = "hapax test";
  return options;
}

void run_on(const std::string& database, const std::string& sql) {
  pqxx::connection connection(postgres().url(database));
  pqxx::nontransaction(connection).exec(sql);
}

// As the file's head tells people to.
void give_rights(const std::string& role, const char* file, const std::string& owner) {
  sandbox::run_to_end({{"psql", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-v", role, "-f",
                        source_folder() / file, owner},
                       {},
                       {},
                       postgres().folder() / "psql.log"},
                      std::chrono::seconds(60));
}

// Databases are copied from this one: quicker than migrating each.
void make_template() {
  postgres().create_database(kTemplate);
  run_on(kTemplate,
         "SET client_min_messages TO error;"
         "CREATE ROLE " +
             std::string(kWorker) + " LOGIN");
  store::Session owner(options_for(postgres().url(kTemplate)));
  store::migrate_up(owner);
  give_rights("worker=" + std::string(kWorker), "sql/roles.sql", postgres().url(kTemplate));
}

std::string next_name() {
  static int made = 0;
  return "test_" + std::to_string(++made);
}

}  // namespace

struct Database::Connection {
  explicit Connection(const std::string& url) : connection(url) {}
  pqxx::connection connection;
};

sandbox::PostgresServer& postgres() {
  // Deadlocks are found fast, so that their tests are.
  static sandbox::PostgresServer server({{}, {{"deadlock_timeout", "50ms"}}});
  return server;
}

Database::Database(Content content)
    : Database(std::string(content == Content::migrated ? kTemplate : "template1")) {
  // A copy knows that it is one; this one is to be taken for an original.
  if (content == Content::migrated)
    run("UPDATE hapax.store SET id = gen_random_uuid(), database_oid = (SELECT oid FROM "
        "pg_database WHERE datname = current_database())");
}

Database::Database(const std::string& original)
    : made_(next_name()), name_(made_), server_(&postgres()) {
  static const bool made = (make_template(), true);
  if (made) run_on("postgres", "CREATE DATABASE " + name_ + " TEMPLATE " + original);
}

std::unique_ptr<Database> Database::copy() {
  connection_.reset();
  return std::unique_ptr<Database>(new Database(name_));
}

Database::~Database() {
  connection_.reset();
  try {
    run_on("postgres", "DROP DATABASE " + made_ + " WITH (FORCE)");
  } catch (const std::exception&) {
    // The server goes away with the process, and the database with it.
  }
}

void Database::look_at(const sandbox::PostgresServer& server, const std::string& name) {
  connection_.reset();
  server_ = &server;
  name_ = name;
}

store::ConnectOptions Database::worker() const { return options_for(server_->url(name_, kWorker)); }

store::ConnectOptions Database::owner() const { return options_for(server_->url(name_)); }

store::ConnectOptions Database::make_operator() {
  run("DO $$ BEGIN CREATE ROLE hapax_operator LOGIN; "
      "EXCEPTION WHEN duplicate_object THEN NULL; END $$");
  give_rights("operator=hapax_operator", "sql/operator.psql", server_->url(name_));
  return options_for(server_->url(name_, "hapax_operator"));
}

void Database::run(const std::string& sql) { value(sql); }

std::string Database::value(const std::string& sql) {
  for (const bool last_try : {false, true}) {
    try {
      if (!connection_) connection_ = std::make_unique<Connection>(server_->url(name_));
      pqxx::nontransaction work(connection_->connection);
      std::string text;
      for (const auto& row : work.exec(sql)) {
        if (!text.empty()) text += '\n';
        std::string line;
        for (const auto& field : row) {
          if (field.num() > 0) line += '|';
          line += field.is_null() ? "null" : field.c_str();
        }
        text += line;
      }
      return text;
    } catch (const pqxx::broken_connection&) {
      connection_.reset();
      if (last_try) throw;
    }
  }
  return {};
}

void Database::wait_until(const std::string& sql, const std::string& wanted) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::string found;
  while (std::chrono::steady_clock::now() < deadline) {
    found = value(sql);
    if (found == wanted) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  throw std::runtime_error(sql + " gave '" + found + "', never '" + wanted + "'");
}

store::ConnectOptions through_port(store::ConnectOptions options, std::uint16_t port) {
  const std::string own = ":" + std::to_string(postgres().port()) + "/";
  options.url.replace(options.url.find(own), own.size(), ":" + std::to_string(port) + "/");
  return options;
}

std::filesystem::path source_folder() { return HAPAX_SOURCE_DIR; }

std::filesystem::path cache_folder() {
  const char* cache = std::getenv("HAPAX_CACHE");
  if (cache != nullptr) return cache;
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "") / ".cache/hapax";
}

}  // namespace hapax::test
