// The PostgreSQL that takes over when the tests' own has died: a physical copy of it that lacks
// what was done last.
//
// Throws from every function: std::exception, with PostgreSQL's own words if it refuses something.
// Blocks: seconds. Thread safety: none; made on a thread that outlives it (see ChildProcess).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "sandbox/postgres_server.hpp"

namespace hapax::support {

// A streaming replica that lags, or a base backup restored to a point in the archived log.
enum class Way { promoted_replica, restored_backup };

class Successor {
 public:
  // Of test::postgres(), which goes on.
  static std::unique_ptr<Successor> make(Way way);

  virtual ~Successor();
  Successor(const Successor&) = delete;
  Successor& operator=(const Successor&) = delete;

  // What the first server does from now on will be missing here; all before is there.
  virtual void part() = 0;

  // Read-only, with all that it will ever have of the first one. Precondition: that one is dead.
  virtual const sandbox::PostgresServer& stand_by() = 0;

  // Returns when it lets writers in.
  virtual void take_over() = 0;

  // The port that it has, or will have.
  std::uint16_t port() const { return port_; }

 protected:
  Successor();

  const std::uint16_t port_;
  const std::filesystem::path folder_;  // within the first server's, as its user must own it
};

}  // namespace hapax::support
