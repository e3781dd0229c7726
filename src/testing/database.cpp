#include "testing/database.hpp"

#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "sandbox/postgres_server.hpp"
#include "store/operator/migrate.hpp"
#include "store/testing/test_database.hpp"

namespace hapax::testing {
namespace {

constexpr const char* kTemplate = "hapax_template";
constexpr const char* kWorker = "hapax_worker";

store::Session connect(const std::string& url) {
  store::Session session({.url = url, .application_name = "hapax test kit"});
  session.serve_handlers();  // a user's schema names tables as handlers do
  return session;
}

// What these tests crash is workers, never PostgreSQL: it need not reach the disk.
sandbox::PostgresOptions quick() {
  return {{},
          {{"fsync", "off"},
           {"full_page_writes", "off"},
           {"autovacuum", "off"},
           {"deadlock_timeout", "50ms"}}};
}

struct Server {
  Server() : postgres(quick()), databases(postgres.url()) {
    databases.copy(kTemplate, "template1");
    store::Session owner = connect(postgres.url(kTemplate));
    store::migrate_up(owner);
    store::make_test_role(owner, kWorker);
  }

  sandbox::PostgresServer postgres;
  store::TestServer databases;
  int made = 0;
  // Dropped by the next: now PostgreSQL would wait for the sessions that have just ended.
  std::vector<std::string> finished;
};

Server& server() {
  static Server server;
  return server;
}

// Takes back what is done there, with the roles that are made meanwhile, though it was committed.
struct CopyOfDatabase {
  explicit CopyOfDatabase(const std::string& original) : name(original + "_copy") {
    server().databases.copy(name, original);
  }
  ~CopyOfDatabase() {
    try {
      server().databases.drop(name);
      server().databases.drop_roles_but(roles);
    } catch (const std::exception&) {
      // The next file that makes such a role is told that it is there.
    }
  }
  CopyOfDatabase(const CopyOfDatabase&) = delete;
  CopyOfDatabase& operator=(const CopyOfDatabase&) = delete;

  const std::string name;
  const std::set<std::string> roles = server().databases.roles();
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    throw std::runtime_error("cannot read the file " + path + folder_of(path));
  return text.str();
}

}  // namespace

Database::Database(const Options& options, const TestedRoute& route) {
  for (const std::string& name : std::exchange(server().finished, {}))
    server().databases.drop(name);
  name_ = "harness_" + std::to_string(++server().made);
  server().databases.copy(name_, kTemplate);
  for (const std::string& path : options.schema) run_schema(path);
  if (!route.rights.empty()) restrict_worker(route);
  if (!options.worker_role.empty()) check_role(options.worker_role, route);
}

void Database::run_schema(const std::string& path) {
  const std::string text = text_of(path);
  store::Session session = connect(server().postgres.url(name_));
  try {
    store::run_schema(session, text, kWorker);
  } catch (const store::DatabaseError& error) {
    throw std::runtime_error("the schema " + path + " fails: " + error.what());
  }
}

void Database::restrict_worker(const TestedRoute& route) {
  store::Session session = connect(server().postgres.url(name_));
  const auto absent = store::restrict_role(session, kWorker, route.rights);
  if (!absent.empty())
    throw std::runtime_error(route.rights_source + " names " + joined(absent) +
                             ", which no file of Options::schema makes: correct one of them");
}

void Database::check_role(const std::string& path, const TestedRoute& route) {
  const std::string text = text_of(path);
  const CopyOfDatabase copy(name_);
  store::Session session = connect(server().postgres.url(copy.name));
  std::vector<std::string> missing;
  try {
    missing = store::ungranted(session, text, kWorker, route.rights);
  } catch (const store::DatabaseError& error) {
    throw std::runtime_error("the file " + path + " fails: " + error.what());
  }
  if (!missing.empty())
    throw std::runtime_error(path + " grants no role " + joined(missing) + ", which " +
                             route.rights_source + " declares: correct one of them");
}

Database::~Database() {
  owner_.reset();
  server().finished.push_back(name_);
}

std::string Database::worker_url() const { return server().postgres.url(name_, kWorker); }

store::Session& Database::owner() {
  if (!owner_) owner_ = connect(server().postgres.url(name_));
  return *owner_;
}

}  // namespace hapax::testing
