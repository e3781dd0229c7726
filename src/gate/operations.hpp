// Requests that were accepted: their names for clients (/operations/<id>), and what became of them.
//
// An id is the tenant and the key, encrypted: it hides both, and needs no row to be found by.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "config/gate.hpp"
#include "gate/request.hpp"
#include "key/siv.hpp"
#include "store/message/operations.hpp"

namespace hapax::gate {

struct Page {
  bool was_last = false;
  std::size_t settled = 0;
};

// Thread safety: all of it.
class Operations {
 public:
  // Nothing: no route of the gate accepts. `config` outlives it.
  static std::optional<Operations> of(const config::GateConfig& config);

  // Whether the route accepts, or is that of the operations.
  bool is_accepting(std::size_t route) const { return gate_.routes[route].accept.has_value(); }
  bool is_own(std::size_t route) const { return route + 1 == gate_.routes.size(); }

  // The path that shows the client what becomes of its request. Pure.
  std::string location_of(const std::string& tenant, const std::string& key) const;

  // The idempotency key of the record that is made of the request. `fingerprint`: the request's, in
  // hex. After the gate has forgotten a key, another request under it is another record. Pure.
  std::string record_key(const std::string& tenant, const std::string& key,
                         const std::string& fingerprint) const;

  // Adds to the transaction that accepts the request. If its record has an outcome already, that
  // outcome is kept until the gate has seen it. `fingerprint`: as above.
  void keep_outcome(store::Transaction& transaction, const Request& request,
                    const std::string& fingerprint) const;

  // Answers the GET of an operation. If a worker committed the outcome asynchronously, the gate
  // answers with it only once it is durable. Throws: store::DatabaseError. Blocks: for PostgreSQL's
  // answers.
  Answer answer(store::Session& session, const Request& request) const;

  // Looks at the next accepted requests after `after`. If a request has its outcome, its key
  // expires from now on. `after` begins as {}, moves with each call, and is {} again after the last
  // page.
  // Throws: store::DatabaseError. Blocks: for PostgreSQL's answers.
  Page settle_page(store::Session& session, store::WaitingOperation& after) const;

 private:
  explicit Operations(const config::GateConfig& config);
  std::optional<store::OperationKey> opened(const std::string& id) const;
  std::string record_of(const store::OperationKey& key, const std::string& fingerprint) const;
  const config::GateRoute* route_of(const std::string& path) const;

  const config::Gate& gate_;
  const std::chrono::seconds retention_;
  const key::Siv siv_;
  const std::string context_;  // of the encryption
};

}  // namespace hapax::gate
