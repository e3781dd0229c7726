// Identifies the caller of a request: its tenant.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/gate.hpp"
#include "gate/request.hpp"
#include "sync/mutex.hpp"

namespace hapax::gate {

struct Caller {
  std::string tenant;
  const char* why_not = nullptr;  // null: it is known who calls
};

// Thread safety: all of it.
class Callers {
 public:
  // `certificates`: certificates of clients identify callers, too.
  Callers(const config::GateCallers& callers, bool certificates);

  // Exactly one of these identifies the caller: the header of a listed proxy, a token, a
  // certificate. `peer`: nothing if it has no Internet address.
  Caller caller_of(const Request& request, const std::optional<config::Address>& peer,
                   const std::optional<ClientCertificate>& certificate) const;

  // Whether the header identifies the caller. Then a handler does not get it.
  bool is_credential(const std::string& header) const;

  bool takes_tokens() const { return !callers_.tokens.empty(); }

  // Reads the file of the tokens if it has changed. If it has a mistake, logs that once and keeps
  // the last tokens. Blocks: on the file. One thread only.
  void look();

 private:
  using Tokens = std::shared_ptr<const std::vector<config::GateToken>>;

  bool is_proxy(const config::Address& peer) const;
  Caller named_by_proxy(const Request& request) const;
  Caller of_token(const Request& request) const;
  const char* how_to_call() const;
  Tokens tokens() const;

  const config::GateCallers callers_;
  const bool certificates_;
  std::string seen_;  // what the file held at the last look, or why it could not be read
  mutable sync::Mutex mutex_;
  Tokens tokens_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::gate
