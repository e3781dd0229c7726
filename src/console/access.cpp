#include "console/access.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "key/sha256.hpp"

namespace hapax::console {
namespace {

using observe::PageAnswer;
using observe::PageRequest;

PageAnswer refused(int status, const std::string& sentence) {
  return {status, "text/plain; charset=utf-8", sentence + "\n"};
}

// "localhost" of "localhost:9470", "[::1]" of "[::1]:9470".
std::string_view name_of_host(std::string_view host) {
  const std::size_t end = host.starts_with('[') ? host.find(']') : host.find(':');
  if (end == std::string_view::npos) return host;
  return host.substr(0, host.starts_with('[') ? end + 1 : end);
}

bool is_loopback(std::string_view host) {
  const std::string_view name = name_of_host(host);
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

// Browsers tell it, and no page can forge it. One that does not tell it sends an Origin.
bool is_own_post(const PageRequest& request) {
  const std::string site = request.header("sec-fetch-site");
  if (!site.empty()) return site == "same-origin";
  const std::string origin = request.header("origin"), host = request.header("host");
  return origin == "http://" + host || origin == "https://" + host;
}

bool is_json(const std::string& type) {
  return type == "application/json" || type.starts_with("application/json;");
}

}  // namespace

Access::Access(std::string token)
    : token_(std::move(token)),
      digest_(key::sha256(token_)),
      cookie_name_("hapax_console_" + key::hex(digest_).substr(0, 8)) {}

std::string Access::random_token() {
  std::array<char, 32> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw std::system_error(errno, std::generic_category(), "getrandom");
  return key::hex({bytes.data(), bytes.size()});
}

std::string Access::cookie() const {
  return cookie_name_ + "=" + token_ + "; Path=/; HttpOnly; SameSite=Strict";
}

bool Access::is_entrance(const PageRequest& request) const {
  const auto given = request.query.find("token");
  return request.path == "/" && request.method == "GET" && given != request.query.end() &&
         key::same_digest(key::sha256(given->second), digest_);
}

bool Access::has_cookie(const PageRequest& request) const {
  const std::string cookies = request.header("cookie");
  for (std::string_view rest = cookies; !rest.empty();) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 1));
    while (one.starts_with(' ')) one.remove_prefix(1);
    const std::size_t equals = one.find('=');
    if (equals != std::string_view::npos && one.substr(0, equals) == cookie_name_ &&
        key::same_digest(key::sha256(one.substr(equals + 1)), digest_))
      return true;
  }
  return false;
}

std::optional<PageAnswer> Access::refusal(const PageRequest& request) const {
  if (!is_loopback(request.header("host")))
    return refused(403,
                   "The console answers to 127.0.0.1 and localhost only. From another machine use "
                   "ssh -L. A proxy must send a Host of localhost.");
  if (is_entrance(request)) return std::nullopt;
  if (!has_cookie(request))
    return refused(401,
                   "Open the URL that `hapax console` printed at its start. It holds a token.");
  const std::string site = request.header("sec-fetch-site");
  if (request.method != "POST") {
    // The files of the page are no secret, and a link may lead to them. "none": typed by the
    // operator.
    if (!request.path.starts_with("/api/") || site.empty() || site == "same-origin" ||
        site == "none")
      return std::nullopt;
    return refused(403, "Another site asked for this.");
  }
  if (!is_own_post(request))
    return refused(403, "Only the console's own page may change something.");
  if (!is_json(request.header("content-type")))
    return refused(415, "An order comes as application/json.");
  return std::nullopt;
}

void Access::add_headers(PageAnswer& answer) {
  answer.headers.insert(
      answer.headers.end(),
      {{"Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"},
       {"Cache-Control", "no-store"},
       {"Cross-Origin-Opener-Policy", "same-origin"},
       {"Cross-Origin-Resource-Policy", "same-origin"},
       {"Referrer-Policy", "no-referrer"},
       {"X-Content-Type-Options", "nosniff"},
       {"X-Frame-Options", "DENY"}});
}

}  // namespace hapax::console
