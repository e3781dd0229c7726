// The tables of `hapax bench`: payments in a schema of its own, and what it leaves in hapax's.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <string>

#include "store/session.hpp"

namespace hapax::store {

class BenchTables {
 public:
  // Makes schema `name`, whose payments `worker` may read and write. `owner`: who may make it.
  // `name` is not quoted: letters, digits and underscores only.
  // Throws: DatabaseError (42501 if the owner may not), as all here.
  BenchTables(Session& owner, std::string name, const std::string& worker_role);

  std::string payments() const { return name_ + ".payments"; }

  struct Booked {
    std::size_t rows = 0;
    std::size_t distinct = 0;
  };
  Booked booked();

  // Adds keys [from, end) of `scope` to hapax's table, in no order of their text, as in real life.
  // Blocks: seconds a million.
  void fill_keys(const std::string& scope, std::size_t from, std::size_t end);

  // Empties the payments.
  void clear();

  // Drops the schema and takes from hapax's tables what groups and scopes that begin with `prefix`
  // left there.
  void remove(const std::string& prefix);

 private:
  Session& owner_;
  std::string name_;
};

// Whom the session is logged in as.
std::string role_of(Session& session);

}  // namespace hapax::store
