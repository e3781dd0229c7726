// The session of one thread of the keeper. If it is lost, decides whether PostgreSQL is away.
//
// Thread safety: none; each thread has its own.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "store/fault.hpp"
#include "store/session.hpp"
#include "worker/postgres_state.hpp"

namespace hapax::worker {

class KeeperSession {
 public:
  KeeperSession(std::function<store::Session()> connect, PostgresState& postgres)
      : connect_(std::move(connect)), postgres_(postgres) {}

  // Connects if no session is open. Throws: DatabaseError. Blocks: at most the connect timeout.
  store::Session& get();

  void drop() { session_.reset(); }

  // Drops the session because of `error`. `what`: what could not be done. An outage begins if
  // PostgreSQL refuses a new connection, too. Throws: nothing. Blocks: as get().
  void broke(const char* what, const store::DatabaseError& error);

  // In an outage: asks whether it is over. Throws: nothing. Blocks: as get().
  void look_for_postgres();

 private:
  store::Session connect();

  const std::function<store::Session()> connect_;
  PostgresState& postgres_;
  std::optional<store::Session> session_;
};

}  // namespace hapax::worker
