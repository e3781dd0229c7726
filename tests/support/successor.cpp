#include "support/successor.hpp"

#include <pqxx/pqxx>
#include <stdexcept>
#include <thread>

#include "sandbox/free_port.hpp"
#include "support/database.hpp"

namespace hapax::support {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kSuccessorPatience = 60s;
constexpr auto kAskSuccessorAgain = 20ms;

std::string ask(const sandbox::PostgresServer& server, const std::string& sql) {
  pqxx::connection connection(server.url());
  const auto rows = pqxx::nontransaction(connection).exec(sql);
  return rows.empty() ? "" : rows[0][0].c_str();
}

template <class Condition>
void await(const std::string& what, Condition met) {
  const auto deadline = std::chrono::steady_clock::now() + kSuccessorPatience;
  while (!met()) {
    if (std::chrono::steady_clock::now() >= deadline) throw std::runtime_error("never: " + what);
    std::this_thread::sleep_for(kAskSuccessorAgain);
  }
}

void await_true(const sandbox::PostgresServer& server, const std::string& sql) {
  await(sql, [&] { return ask(server, sql) == "t"; });
}

// As the server's user, who must own what it makes.
void run(const std::string& program, std::vector<std::string> arguments) {
  sandbox::run_to_end(test::postgres().program(program, std::move(arguments)), kSuccessorPatience);
}

void back_up(const fs::path& folder, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"--pgdata",  folder / "data", "--checkpoint",        "fast",
                                        "--no-sync", "--dbname",      test::postgres().url()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  run("pg_basebackup", std::move(arguments));
}

fs::path next_folder() {
  static int made = 0;
  return test::postgres().folder() / ("successor" + std::to_string(++made));
}

class PromotedReplica final : public Successor {
 public:
  PromotedReplica() {
    back_up(folder_, {"--write-recovery-conf"});
    server_ =
        std::make_unique<sandbox::PostgresServer>(sandbox::PostgresOptions{folder_, {}, port_});
  }

  void part() override {
    const std::string at = ask(test::postgres(), "SELECT pg_current_wal_lsn()");
    await_true(*server_, "SELECT pg_last_wal_replay_lsn() >= '" + at + "'");
    // The link is down. (A pause of the replay would not do: promotion replays what has arrived.)
    ask(*server_, "ALTER SYSTEM SET primary_conninfo TO ''");
    ask(*server_, "SELECT pg_reload_conf()");
    await_true(*server_, "SELECT count(*) = 0 FROM pg_stat_wal_receiver");
  }

  const sandbox::PostgresServer& stand_by() override {
    await_true(*server_,  // it waits for more: what has arrived is replayed
               "SELECT coalesce(wait_event, '') LIKE 'Recovery%' FROM pg_stat_activity "
               "WHERE backend_type = 'startup'");
    return *server_;
  }

  void take_over() override { ask(*server_, "SELECT pg_promote()"); }

 private:
  std::unique_ptr<sandbox::PostgresServer> server_;
};

class RestoredBackup final : public Successor {
 public:
  RestoredBackup() {
    run("/bin/mkdir", {"--parents", archive_});
    archiver_ = std::make_unique<sandbox::ChildProcess>(test::postgres().program(
        "pg_receivewal", {"--directory", archive_, "--dbname", test::postgres().url()}));
    await("the archive begins", [&] { return !fs::is_empty(archive_); });
    back_up(folder_);
  }

  void part() override {
    const std::string segment =
        ask(test::postgres(), "SELECT pg_walfile_name(pg_create_restore_point('parted'))");
    ask(test::postgres(), "SELECT pg_switch_wal()");
    await("the archive has " + segment, [&] { return fs::exists(archive_ / segment); });
  }

  const sandbox::PostgresServer& stand_by() override {
    archiver_.reset();
    run("/bin/touch", {folder_ / "data/recovery.signal"});
    server_ = std::make_unique<sandbox::PostgresServer>(
        sandbox::PostgresOptions{folder_,
                                 {{"restore_command", "cp " + archive_.string() + "/%f %p"},
                                  {"recovery_target_name", "parted"},
                                  {"recovery_target_action", "pause"}},
                                 port_});
    await_true(*server_, "SELECT pg_get_wal_replay_pause_state() = 'paused'");
    return *server_;
  }

  void take_over() override {
    ask(*server_, "SELECT pg_wal_replay_resume()");
    await_true(*server_, "SELECT NOT pg_is_in_recovery()");
  }

 private:
  const fs::path archive_ = folder_ / "archive";
  std::unique_ptr<sandbox::ChildProcess> archiver_;
  std::unique_ptr<sandbox::PostgresServer> server_;
};

}  // namespace

Successor::Successor() : port_(sandbox::free_port()), folder_(next_folder()) {}

Successor::~Successor() {
  std::error_code ignored;  // goes with the first server's folder
  fs::remove_all(folder_, ignored);
}

std::unique_ptr<Successor> Successor::make(Way way) {
  if (way == Way::promoted_replica) return std::make_unique<PromotedReplica>();
  return std::make_unique<RestoredBackup>();
}

}  // namespace hapax::support
