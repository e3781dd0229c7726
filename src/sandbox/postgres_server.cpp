#include "sandbox/postgres_server.hpp"

#include <pwd.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "sandbox/free_port.hpp"
#include "sandbox/process_tree.hpp"

namespace hapax::sandbox {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kAnswerTimeout = 60s;
constexpr const char* kServiceUser = "postgres";

// The one in PATH, which the user chose; else the newest in Debian's folders.
fs::path find_binaries() {
  if (const auto initdb = find_in_path("initdb")) return fs::canonical(*initdb).parent_path();
  int newest = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", none)) {
    const std::string name = entry.path().filename();
    int version = 0;
    std::from_chars(name.data(), name.data() + name.size(), version);
    if (version > newest && fs::exists(entry.path() / "bin/initdb")) newest = version;
  }
  if (newest == 0)
    throw std::runtime_error(
        "no PostgreSQL server on this machine: initdb is neither in PATH nor in "
        "/usr/lib/postgresql/*/bin; install it with: apt-get install postgresql");
  return fs::path("/usr/lib/postgresql") / std::to_string(newest) / "bin";
}

// PostgreSQL refuses to run as root. Returns "" if we may run it ourselves.
std::string user_to_run_as(const fs::path& folder) {
  if (geteuid() != 0) return "";
  const passwd* entry = getpwnam(kServiceUser);
  if (entry == nullptr)
    throw std::runtime_error(
        "PostgreSQL refuses to run as root and there is no user postgres; "
        "it comes with: apt-get install postgresql");
  checked(chown(folder.c_str(), entry->pw_uid, entry->pw_gid), "chown " + folder.string());
  return kServiceUser;
}

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

PostgresServer::PostgresServer(PostgresOptions options)
    : options_(std::move(options)),
      binaries_(find_binaries()),
      port_(options_.port != 0 ? options_.port : free_port()) {
  if (options_.folder.empty()) {
    temporary_ = std::make_unique<TemporaryFolder>("postgres");
    folder_ = temporary_->path();
  } else {
    folder_ = fs::absolute(options_.folder);
    fs::create_directories(folder_);
  }
  user_ = user_to_run_as(folder_);
  if (!fs::exists(folder_ / "data/PG_VERSION")) make_cluster();
  start();
}

PostgresServer::~PostgresServer() {
  try {
    stop();
  } catch (const std::exception&) {
    kill();
  }
}

Program PostgresServer::program(const std::string& name, std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), binaries_ / name);
  // SIGQUIT: it goes down with all its processes and takes its shared memory along.
  return {std::move(arguments), {}, folder_, log(), user_, SIGQUIT};
}

void PostgresServer::make_cluster() {
  // --no-sync: only the making. What the server writes later is flushed.
  run_to_end(program("initdb", {"--pgdata", folder_ / "data", "--username", "postgres", "--auth",
                                "trust", "--locale", "C", "--encoding", "UTF8", "--no-sync"}),
             kAnswerTimeout);
}

void PostgresServer::start() {
  // No Unix socket: its path is limited to 107 bytes, and a folder may be anywhere.
  std::vector<std::string> arguments = {"-D", folder_ / "data",
                                        "-p", std::to_string(port_),
                                        "-c", "listen_addresses=127.0.0.1",
                                        "-c", "unix_socket_directories="};
  for (const auto& [name, value] : options_.settings) {
    arguments.emplace_back("-c");
    arguments.push_back(name + '=' + value);
  }
  process_ = std::make_unique<ChildProcess>(program("postgres", std::move(arguments)));
  // "connections", or of a standby "read-only connections".
  if (process_->wait_for_line("database system is ready to accept ", kAnswerTimeout)) return;
  const auto exit = process_->wait(0ms);
  process_.reset();
  throw std::runtime_error("PostgreSQL did not start (" + (exit ? exit->text() : "timeout") +
                           "):\n" + text_of(log()));
}

void PostgresServer::stop() {
  if (!process_) return;
  process_->signal(SIGINT);
  if (!process_->wait(kAnswerTimeout))
    throw std::runtime_error("PostgreSQL did not stop:\n" + text_of(log()));
  process_.reset();
}

void PostgresServer::kill() {
  if (!process_) return;
  kill_tree(*process_);
  process_.reset();
}

bool PostgresServer::running() { return process_ && process_->running(); }

void PostgresServer::create_database(const std::string& name) {
  run_to_end(program("createdb", {"--host", "127.0.0.1", "--port", std::to_string(port_),
                                  "--username", "postgres", name}),
             kAnswerTimeout);
}

std::string PostgresServer::url(const std::string& database, const std::string& user) const {
  return "postgresql://" + user + "@127.0.0.1:" + std::to_string(port_) + '/' + database;
}

}  // namespace hapax::sandbox
