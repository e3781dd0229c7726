// A PostgreSQL database for one test: migrated, with the worker's role and its rights.
//
// All tests of a process share one server; each test gets a copy of one migrated template. Code
// under test connects as the worker role, because the seal and the rights depend on the role. The
// test looks at the outcome as the owner.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "sandbox/postgres_server.hpp"
#include "store/session.hpp"

namespace hapax::test {

// The server of this process, started by the first who asks. Precondition: on the main thread.
sandbox::PostgresServer& postgres();

class Database {
 public:
  enum class Content { migrated, empty };

  // Throws: std::exception. Blocks: a fraction of a second; the first one starts the server.
  explicit Database(Content content = Content::migrated);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // A logical copy, as pg_dump or CREATE DATABASE … TEMPLATE makes it.
  // Precondition: no other session is connected to this one.
  std::unique_ptr<Database> copy();

  const std::string& name() const { return name_; }

  // From now on all functions ask the database of this name on another server: a physical or a
  // logical copy that the test made. `server` outlives this.
  void look_at(const sandbox::PostgresServer& server, const std::string& name);

  // How a worker connects (the role of sql/roles.sql), and the owner of the schema.
  store::ConnectOptions worker() const;
  store::ConnectOptions owner() const;

  // The role of sql/operator.psql, which this makes. Throws: std::exception.
  store::ConnectOptions make_operator();

  // One text as the owner, in its own transaction; survives a restart of the server in between.
  void run(const std::string& sql);

  // The rows of the last statement, fields joined with '|' (NULL as "null"), rows with a newline.
  std::string value(const std::string& sql);
  int count(const std::string& sql) { return std::stoi(value(sql)); }

  // Returns once `sql` gives `wanted`. Polls, because PostgreSQL does not report when one session
  // begins to wait for another.
  // Throws: std::runtime_error after a minute.
  void wait_until(const std::string& sql, const std::string& wanted);

 private:
  struct Connection;
  explicit Database(const std::string& original);

  std::string made_;  // on postgres(); dropped at the end
  std::string name_;
  const sandbox::PostgresServer* server_;
  std::unique_ptr<Connection> connection_;
};

// The same connection through another port of 127.0.0.1.
store::ConnectOptions through_port(store::ConnectOptions options, std::uint16_t port);

// The root of the source tree.
std::filesystem::path source_folder();
// What tests/**/get_*.sh have fetched: $HAPAX_CACHE or ~/.cache/hapax.
std::filesystem::path cache_folder();

}  // namespace hapax::test
