// The ground of `hapax bench`: a broker and a PostgreSQL, its own topics, groups, table and rows
// in them, and their removal.
//
// Thread safety: none; start it from a thread that outlives it (see ChildProcess).
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "kafka/mock_cluster.hpp"
#include "sandbox/postgres_server.hpp"
#include "sandbox/proxy.hpp"
#include "tools/bench/tables.hpp"

namespace hapax::app {

struct BenchPlace {
  // Its broker and database; nothing: librdkafka's built-in broker and a throw-away PostgreSQL.
  std::optional<config::Config> config = std::nullopt;
  std::string owner_url = {};         // who may make a schema; empty: as the configuration
  std::chrono::nanoseconds delay{0};  // of PostgreSQL, a round trip, for who is measured
};

class BenchGround {
 public:
  // Throws: Stop. Blocks: seconds.
  explicit BenchGround(const BenchPlace& place);

  // Removes all that was made; prints on stderr what it could not remove.
  ~BenchGround();
  BenchGround(const BenchGround&) = delete;
  BenchGround& operator=(const BenchGround&) = delete;

  // What all names begin with: "hapax-bench-1a2b3c4d".
  const std::string& name() const { return name_; }
  store::BenchTables& tables() { return *tables_; }

  // The configuration of a worker here, with a new group and without routes.
  config::Config worker();

  // Throws: Stop.
  std::string make_topic(const std::string& suffix, int partitions);

  // Throws: Stop if the built-in broker did not keep all that was sent.
  void expect_all_kept(const std::string& topic, int partitions, std::size_t messages);

  // For reports.
  Json facts() const;

 private:
  void make_sandbox();
  void open(const std::string& owner_url);
  void put_away(std::chrono::nanoseconds delay);

  const std::string name_;
  config::Config config_;
  std::unique_ptr<sandbox::PostgresServer> postgres_;
  std::unique_ptr<sandbox::Proxy> proxy_;
  std::string url_;  // of who is measured
  std::unique_ptr<kafka::MockCluster> cluster_;
  std::optional<store::Session> owner_;
  std::optional<store::BenchTables> tables_;
  std::vector<std::string> topics_;
  std::vector<std::string> groups_;
  std::string server_version_;
};

}  // namespace hapax::app
