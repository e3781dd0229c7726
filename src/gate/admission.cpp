#include "gate/admission.hpp"

#include <algorithm>

#include "gate/key_header.hpp"
#include "gate/problem.hpp"
#include "key/key_source.hpp"

namespace hapax::gate {
namespace {

std::vector<std::string_view> values_of(
    const std::vector<std::pair<std::string, std::string>>& headers, std::string_view name) {
  std::vector<std::string_view> values;
  for (const auto& [header, value] : headers)
    if (header == name) values.push_back(value);
  return values;
}

bool equal(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, [](char a, char b) { return key::lower_case(a) == b; });
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

Answer bad_request(const std::string& detail) {
  return refused(400, "bad-request", "The request cannot be understood", detail);
}

// Returns the path and the rest of "/path" or "http://host/path". Nothing: it is neither.
std::optional<std::string> origin_form(const std::string& target) {
  if (target.starts_with('/')) return target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const std::size_t path = target.find_first_of("/?", scheme.size());
    if (path == std::string::npos) return "/";
    return target[path] == '/' ? target.substr(path) : "/" + target.substr(path);
  }
  return std::nullopt;
}

std::optional<Answer> unsupported(const Request& request) {
  for (const std::string_view expected : values_of(request.headers, "expect"))
    if (!equal(expected, "100-continue"))
      return refused(417, "expectation", "An expectation cannot be met",
                     "The only one is 100-continue.");
  for (const std::string_view coding : values_of(request.headers, "content-encoding"))
    if (!equal(coding, "identity"))
      return refused(415, "content-encoding", "The body is encoded",
                     "Send it without a Content-Encoding.");
  return std::nullopt;
}

bool is_guarded(const std::string& method) { return method != "GET" && method != "HEAD"; }

std::string allowed(const config::GateRoute& route) {
  std::string methods = "OPTIONS";
  for (const std::string& method : route.methods)
    methods += ", " + method + (method == "GET" ? ", HEAD" : "");
  return methods;
}

Answer health(bool ok, const std::string& word) {
  return {{ok ? 200 : 503, {{"Content-Type", "text/plain"}}, word}, observe::Answered::unguarded};
}

}  // namespace

std::variant<Request, Answer> Admission::admit(Head head) const {
  if (head.target == "/healthz") return health(status_.live().ok, "ok\n");
  if (head.target == "/readyz") {
    const bool ready = status_.ready().ok;
    return health(ready, ready ? "ready\n" : "not ready\n");
  }
  Request request;
  request.headers = std::move(head.headers);
  if (auto answer = identify(request, head)) return *std::move(answer);
  if (auto answer = unsupported(request)) return *std::move(answer);
  if (auto answer = address(request, head)) return *std::move(answer);
  if (auto answer = authorise(request)) return *std::move(answer);
  if (status_.is_known_away())
    return unavailable("The database is away. Try again with the same key.");
  return request;
}

// Refuses requests that a proxy in front of the gate may have read differently.
std::optional<Answer> Admission::malformed(const Head& head) const {
  if (head.headers.size() > gate_.limits.headers)
    return refused(431, "too-many-headers", "The request has too many headers",
                   "At most " + std::to_string(gate_.limits.headers) + " are taken.");
  const auto lengths = values_of(head.headers, "content-length");
  const auto encodings = values_of(head.headers, "transfer-encoding");
  if (lengths.size() > 1) return bad_request("There are two Content-Lengths.");
  if (!lengths.empty() && !is_number(lengths[0]))
    return bad_request("The Content-Length is not a number.");
  if (!lengths.empty() && !encodings.empty())
    return bad_request("There are a Content-Length and a Transfer-Encoding.");
  if (encodings.size() > 1 || (!encodings.empty() && !equal(encodings[0], "chunked")))
    return bad_request("The only Transfer-Encoding is chunked.");
  if (!encodings.empty() && !head.is_http_1_1)
    return bad_request("HTTP/1.0 has no Transfer-Encoding.");
  const auto hosts = values_of(head.headers, "host");
  if (hosts.size() > 1 || (hosts.empty() && head.is_http_1_1))
    return bad_request("There must be one Host.");
  const auto types = values_of(head.headers, "content-type");
  if (std::ranges::any_of(types, [&](std::string_view type) { return type != types[0]; }))
    return bad_request("There are two different Content-Types.");
  return std::nullopt;
}

// Nothing: the request has the path and method of a route.
std::optional<Answer> Admission::address(Request& request, const Head& head) const {
  const auto target = origin_form(head.target);
  const bool visible =
      std::ranges::all_of(head.target, [](char c) { return c > 0x20 && c < 0x7F && c != '#'; });
  if (!target || !visible) return bad_request("The request target is not a path.");
  const std::size_t mark = target->find('?');
  request.path = target->substr(0, mark);
  if (mark != std::string::npos) request.query = target->substr(mark + 1);
  auto match = routes_.find(request.path);
  if (!match) return refused(404, "no-route", "Nothing is here", "No route takes this path.");
  const config::GateRoute& route = routes_[match->route];
  const std::string wanted = head.method == "HEAD" ? "GET" : head.method;
  if (head.method == "OPTIONS")
    return Answer{{204, {{"Allow", allowed(route)}}, ""}, observe::Answered::unguarded};
  if (std::ranges::find(route.methods, wanted) == route.methods.end()) {
    Answer answer = refused(405, "method", "The method is not allowed", "See the header Allow.");
    answer.response.headers.emplace_back("Allow", allowed(route));
    return answer;
  }
  request.method = wanted;
  request.route = match->route;
  request.parameters = std::move(match->parameters);
  return std::nullopt;
}

// Nothing: it is known who calls.
std::optional<Answer> Admission::identify(Request& request, const Head& head) const {
  Caller caller = callers_.caller_of(request, head.peer, head.certificate);
  if (caller.why_not == nullptr) {
    request.tenant = std::move(caller.tenant);
    return std::nullopt;
  }
  Answer answer = refused(401, "unauthenticated", "It is not known who calls", caller.why_not);
  if (callers_.takes_tokens()) answer.response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

// Nothing: the caller may do this, and it is known with which key.
std::optional<Answer> Admission::authorise(Request& request) const {
  const std::vector<std::string>& tenants = routes_[request.route].tenants;
  if (!tenants.empty() && std::ranges::find(tenants, request.tenant) == tenants.end())
    return refused(403, "forbidden", "The caller may not do this",
                   "The route is not for this caller.");
  if (!is_guarded(request.method)) return std::nullopt;
  auto key = key_of(values_of(request.headers, "idempotency-key"));
  if (auto* answer = std::get_if<Answer>(&key)) return std::move(*answer);
  request.key = std::get<std::string>(std::move(key));
  return std::nullopt;
}

}  // namespace hapax::gate
