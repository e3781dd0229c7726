#include "gate/callers.hpp"

#include <algorithm>

#include "key/key_source.hpp"
#include "key/sha256.hpp"

namespace hapax::gate {
namespace {

// Of the one header of this name. Nothing if there are none or several: which one is meant would be
// the sender's to steer.
std::optional<std::string> only(const Request& request, const std::string& name) {
  std::optional<std::string> value;
  for (const auto& [header, text] : request.headers) {
    if (header != name) continue;
    if (value) return std::nullopt;
    value = text;
  }
  return value;
}

}  // namespace

std::optional<std::string> Callers::tenant_of(const Request& request,
                                              const std::optional<config::Address>& peer) const {
  return peer && is_proxy(*peer) ? named_by_proxy(request) : of_token(request);
}

bool Callers::is_proxy(const config::Address& peer) const {
  return std::ranges::any_of(
      callers_.proxies, [&](const config::Network& network) { return network.contains(peer); });
}

std::optional<std::string> Callers::named_by_proxy(const Request& request) const {
  const auto tenant = only(request, callers_.header);
  return tenant && !tenant->empty() ? tenant : std::nullopt;
}

// All are compared, so that the time tells nothing of which one was nearly right.
std::optional<std::string> Callers::of_token(const Request& request) const {
  constexpr std::string_view kScheme = "bearer ";
  const auto credentials = only(request, "authorization");
  if (!credentials || credentials->size() <= kScheme.size()) return std::nullopt;
  std::string scheme = credentials->substr(0, kScheme.size());
  std::ranges::transform(scheme, scheme.begin(), key::lower_case);
  if (scheme != kScheme) return std::nullopt;
  const std::string digest = key::sha256(std::string_view(*credentials).substr(kScheme.size()));
  const config::GateToken* found = nullptr;
  for (const config::GateToken& token : callers_.tokens)
    if (key::same_digest(token.digest, digest)) found = &token;
  return found == nullptr ? std::nullopt : std::optional(found->tenant);
}

bool Callers::is_credential(const std::string& header) const {
  return header == "authorization" || header == "proxy-authorization" || header == "cookie" ||
         (!callers_.header.empty() && header == callers_.header);
}

}  // namespace hapax::gate
