// Requests that were accepted: their names for clients (/operations/<id>), and what became of them.
//
// An id is the tenant and the key, encrypted: it hides both, and needs no row to be found by.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/gate.hpp"
#include "gate/request.hpp"
#include "key/siv.hpp"
#include "store/message/operations.hpp"

namespace hapax::gate {

// How the publish of an accepted request is named; the record's idempotency key is made of it.
inline constexpr const char* kAcceptedName = "request";

// Thread safety: all of it.
class Operations {
 public:
  // Nothing: no route of the gate accepts.
  static std::optional<Operations> of(const config::GateConfig& config);

  // Whether the route accepts, or is that of the operations.
  bool is_accepting(std::size_t route) const { return accepting_[route]; }
  bool is_own(std::size_t route) const { return route + 1 == accepting_.size(); }

  // The path that shows the client what becomes of its request. Pure.
  std::string location_of(const std::string& tenant, const std::string& key) const;

  // The idempotency key of the record that is made of the request. Pure.
  std::string record_key(const std::string& tenant, const std::string& key) const;

  // GET of an operation. What a worker committed asynchronously is answered only once it is
  // durable. Throws: store::DatabaseError. Blocks: for PostgreSQL's answers.
  Answer answer(store::Session& session, const Request& request) const;

  // Lets the keys of accepted requests expire, whose outcome is there: of the next ones behind
  // `after`, which begins as {}. True if these were the last, and `after` stands at the first
  // again. Throws: store::DatabaseError. Blocks: for PostgreSQL's answers.
  bool settle_page(store::Session& session, store::WaitingOperation& after) const;

 private:
  explicit Operations(const config::GateConfig& config);
  std::optional<store::OperationKey> opened(const std::string& id) const;
  store::OperationKey named(std::string key, std::string tenant) const;

  const key::Siv siv_;
  const std::string context_;  // of the encryption
  const store::OperationsScope scope_;
  std::vector<bool> accepting_;  // by route
};

}  // namespace hapax::gate
