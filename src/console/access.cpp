#include "console/access.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

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

Access::Access(std::string_view token) : digest_(key::sha256(token)) {}

std::string Access::random_token() {
  std::array<char, 32> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw std::system_error(errno, std::generic_category(), "getrandom");
  return key::hex({bytes.data(), bytes.size()});
}

bool Access::has_token(const PageRequest& request) const {
  return key::same_digest(key::sha256(request.header("x-hapax-token")), digest_);
}

std::optional<PageAnswer> Access::refusal(const PageRequest& request) const {
  if (!is_loopback(request.header("host")))
    return refused(403,
                   "The console answers to 127.0.0.1 and localhost only. From another machine use "
                   "ssh -L. A proxy must send a Host of localhost.");
  const bool is_file = !request.path.starts_with("/api/");
  if (!is_file && !has_token(request))
    return refused(
        401,
        "Open the URL that `hapax console` printed at its start, in this tab. It holds a "
        "token.");
  const std::string site = request.header("sec-fetch-site");
  if (request.method != "POST") {
    // The files of the page are no secret, and a link may lead to them. "none": typed by the
    // operator.
    if (is_file || site.empty() || site == "same-origin" || site == "none") return std::nullopt;
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
