// The PostgreSQL of this process, and one harness's database in it.
//
// Thread safety: none; on the thread that made the first one, which must live as long as they do.
#pragma once

#include <optional>
#include <string>

#include "store/session.hpp"
#include "testing/route.hpp"

namespace hapax::testing {

class Database {
 public:
  // hapax's schema, and the user's from files of SQL. The worker's role gets the route's rights; if
  // it declares none, all rights that a handler may need.
  // Throws: std::runtime_error (no PostgreSQL, a file that cannot be read, fails, or contradicts
  //   the rights).
  // Blocks: about 0.1 s; the first one of a process about 1 s.
  Database(const Options& options, const TestedRoute& route);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  std::string worker_url() const;

  // The owner's session; connects if there is none.
  store::Session& owner();

 private:
  void run_schema(const std::string& path);
  void restrict_worker(const TestedRoute& route);
  void check_role(const std::string& path, const TestedRoute& route);

  std::string name_;
  std::optional<store::Session> owner_;
};

}  // namespace hapax::testing
