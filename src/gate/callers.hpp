// Who calls: the tenant that a request is of.
#pragma once

#include <optional>
#include <string>

#include "config/gate.hpp"
#include "gate/request.hpp"

namespace hapax::gate {

// Thread safety: immutable.
class Callers {
 public:
  explicit Callers(const config::GateCallers& callers) : callers_(callers) {}

  // Nothing: not authenticated. Through a proxy that is listed, no token counts. `peer`: nothing if
  // it has no address of the Internet.
  std::optional<std::string> tenant_of(const Request& request,
                                       const std::optional<config::Address>& peer) const;

  // Whether it tells who calls, so that a handler does not get it.
  bool is_credential(const std::string& header) const;

 private:
  bool is_proxy(const config::Address& peer) const;
  std::optional<std::string> named_by_proxy(const Request& request) const;
  std::optional<std::string> of_token(const Request& request) const;

  const config::GateCallers callers_;
};

}  // namespace hapax::gate
