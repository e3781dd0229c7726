// PostgreSQL's processes stand still: connections stay, and nothing answers.
#pragma once

#include <csignal>
#include <fstream>
#include <sstream>
#include <vector>

#include "support/database.hpp"

namespace hapax::test {

class StandsStill {
 public:
  explicit StandsStill(Database& database) {
    std::ifstream(postgres().folder() / "data" / "postmaster.pid") >> pids_.emplace_back();
    std::istringstream backends(database.value("SELECT pid FROM pg_stat_activity"));
    for (pid_t pid = 0; backends >> pid;) pids_.push_back(pid);
    for (const pid_t pid : pids_) ::kill(pid, SIGSTOP);
  }
  ~StandsStill() {
    for (const pid_t pid : pids_) ::kill(pid, SIGCONT);
  }
  StandsStill(const StandsStill&) = delete;
  StandsStill& operator=(const StandsStill&) = delete;

 private:
  std::vector<pid_t> pids_;
};

}  // namespace hapax::test
