#include "gate/callers.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "config/file_text.hpp"
#include "key/key_source.hpp"
#include "key/sha256.hpp"
#include "observe/log.hpp"

namespace hapax::gate {
namespace {

// The value of the only header with this name. Nothing if there is none, or if there are several,
// because then the sender could choose which one counts.
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

Callers::Callers(const config::GateCallers& callers, bool certificates)
    : callers_(callers),
      certificates_(certificates),
      tokens_(std::make_shared<std::vector<config::GateToken>>(callers.tokens)) {}

Caller Callers::caller_of(const Request& request, const std::optional<config::Address>& peer,
                          const std::optional<ClientCertificate>& certificate) const {
  if (peer && is_proxy(*peer)) return named_by_proxy(request);
  if (!certificates_ || !certificate) return of_token(request);
  const bool names_another = std::ranges::any_of(
      request.headers, [](const auto& header) { return header.first == "authorization"; });
  if (names_another && takes_tokens())
    return {{},
            "There are a client certificate and a header Authorization. Send only one of them."};
  if (certificate->name.empty())
    return {{}, "The subject of the client certificate must have exactly one common name."};
  return {certificate->name};
}

bool Callers::is_proxy(const config::Address& peer) const {
  return std::ranges::any_of(
      callers_.proxies, [&](const config::Network& network) { return network.contains(peer); });
}

Caller Callers::named_by_proxy(const Request& request) const {
  auto tenant = only(request, callers_.header);
  if (tenant && !tenant->empty()) return {*std::move(tenant)};
  return {{}, "The proxy must name the caller in exactly one header."};
}

// Compares with all tokens, so the time does not show which one was nearly right.
Caller Callers::of_token(const Request& request) const {
  constexpr std::string_view kScheme = "bearer ";
  const auto credentials = only(request, "authorization");
  if (!credentials || credentials->size() <= kScheme.size()) return {{}, how_to_call()};
  std::string scheme = credentials->substr(0, kScheme.size());
  std::ranges::transform(scheme, scheme.begin(), key::lower_case);
  if (scheme != kScheme) return {{}, how_to_call()};
  const std::string digest = key::sha256(std::string_view(*credentials).substr(kScheme.size()));
  const Tokens known = tokens();
  const config::GateToken* found = nullptr;
  for (const config::GateToken& token : *known)
    if (key::same_digest(token.digest, digest)) found = &token;
  if (found == nullptr) return {{}, how_to_call()};
  return {found->tenant};
}

const char* Callers::how_to_call() const {
  if (certificates_ && takes_tokens())
    return "Connect with a client certificate, or send a bearer token in the header Authorization.";
  if (certificates_) return "Connect with a client certificate.";
  return "Send a bearer token in the header Authorization.";
}

Callers::Tokens Callers::tokens() const {
  const sync::Lock lock(mutex_);
  return tokens_;
}

void Callers::look() {
  if (callers_.tokens_file.empty()) return;
  const auto file = config::read_value(callers_.tokens_file);
  const auto* text = std::get_if<config::FileText>(&file);
  const std::string now = text ? text->text : std::get<config::NotRead>(file).why;
  if (now == seen_) return;
  const bool first = seen_.empty();
  seen_ = now;
  auto read = text ? config::tokens_of(now)
                   : std::variant<std::vector<config::GateToken>, std::string>(now);
  if (const auto* why = std::get_if<std::string>(&read)) {
    observe::log::warning("tokens_not_taken", {{"error", *why}},
                          "the file of gate.callers.tokens has changed and cannot be used; the "
                          "last tokens stay");
    return;
  }
  auto& found = std::get<std::vector<config::GateToken>>(read);
  const std::size_t count = found.size();
  {
    const sync::Lock lock(mutex_);
    tokens_ = std::make_shared<std::vector<config::GateToken>>(std::move(found));
  }
  if (!first)
    observe::log::info("tokens_taken", {{"tokens", count}},
                       "the file of gate.callers.tokens has changed; its tokens count from now on");
}

bool Callers::is_credential(const std::string& header) const {
  return header == "authorization" || header == "proxy-authorization" || header == "cookie" ||
         (!callers_.header.empty() && header == callers_.header);
}

}  // namespace hapax::gate
