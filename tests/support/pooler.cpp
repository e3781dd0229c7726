#include "support/pooler.hpp"

#include <csignal>
#include <fstream>

#include "sandbox/free_port.hpp"
#include "support/database.hpp"

namespace hapax::support {
namespace {

// Debian's path, which is in root's PATH only.
constexpr const char* kProgram = "/usr/sbin/pgbouncer";

}  // namespace

std::optional<std::string> Pooler::missing() {
  if (std::filesystem::exists(kProgram)) return std::nullopt;
  return std::string(kProgram) + " is not there: apt-get install pgbouncer";
}

// Its settings are in the server's folder, as it runs as the server's user.
Pooler::Pooler(std::string database, std::uint16_t target, std::string mode)
    : database_(std::move(database)),
      mode_(std::move(mode)),
      port_(sandbox::free_port()),
      settings_(test::postgres().folder() / ("pgbouncer" + std::to_string(port_) + ".ini")) {
  write_settings(target);
  sandbox::Program program = test::postgres().program(kProgram, {"-q", settings_});
  program.death_signal = SIGKILL;
  process_ = std::make_unique<sandbox::ChildProcess>(program);
}

Pooler::~Pooler() = default;

void Pooler::lead_to(std::uint16_t target) {
  write_settings(target);
  process_->signal(SIGHUP);
}

void Pooler::write_settings(std::uint16_t target) const {
  std::ofstream(settings_) << "[databases]\n"
                           << database_ << " = host=127.0.0.1 port=" << target
                           << " user=hapax_worker\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
                           << "listen_port = " << port_ << "\nunix_socket_dir =\n"
                           << "auth_type = any\npool_mode = " << mode_
                           << "\nserver_login_retry = 1\n"
                           << "query_wait_timeout = 5\n";
}

}  // namespace hapax::support
