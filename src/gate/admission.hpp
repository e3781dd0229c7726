// Decides by the header alone, before a byte of the body is read. It finds out whether the request
// can be understood, who calls, its route, and its key. It does not ask PostgreSQL.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/gate.hpp"
#include "gate/callers.hpp"
#include "gate/request.hpp"
#include "gate/routes.hpp"
#include "gate/status.hpp"

namespace hapax::gate {

// A header as it came.
struct Head {
  std::string method;
  std::string target;
  bool is_http_1_1 = true;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::optional<config::Address> peer;
  std::optional<ClientCertificate> certificate = {};
};

// Thread safety: immutable.
class Admission {
 public:
  Admission(const config::Gate& gate, const Callers& callers, const Status& status)
      : gate_(gate), routes_(gate.routes), callers_(callers), status_(status) {}

  // Why the request cannot be understood. Then its length is not known, so its connection must be
  // closed. Nothing: it can be understood.
  std::optional<Answer> malformed(const Head& head) const;

  // The request without its body, or its answer. Precondition: !malformed(head).
  std::variant<Request, Answer> admit(Head head) const;

  const Routes& routes() const { return routes_; }

 private:
  std::optional<Answer> identify(Request& request, const Head& head) const;
  std::optional<Answer> address(Request& request, const Head& head) const;
  std::optional<Answer> authorise(Request& request) const;

  const config::Gate& gate_;
  const Routes routes_;
  const Callers& callers_;
  const Status& status_;
};

}  // namespace hapax::gate
