#include "gate/operations.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "flow/publisher.hpp"
#include "flow/stored_response.hpp"
#include "gate/problem.hpp"
#include "gate/request_message.hpp"
#include "key/key_source.hpp"
#include "key/key_text.hpp"
#include "key/sha256.hpp"

namespace hapax::gate {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kPage = 500;
constexpr int kLooks = 3;  // until the outcome stands still

store::OperationsScope scope_of(const config::GateConfig& config) {
  store::OperationsScope scope{
      config.gate.scope, std::chrono::ceil<std::chrono::seconds>(config.gate.retention), {}, {}};
  for (const config::GateRoute& route : config.gate.routes) {
    if (!route.accept) continue;
    scope.paths.push_back(route.path);
    scope.scopes.push_back(route.accept->scope);
  }
  return scope;
}

Answer shown(int status, std::string body) {
  Answer answer{{.status = status, .body = std::move(body) + "\n"}, observe::Answered::unguarded};
  answer.response.headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}};
  return answer;
}

Answer still_pending() {
  Answer answer = shown(202, R"({"status":"pending"})");
  answer.response.headers.emplace_back("Retry-After", "1");
  return answer;
}

Answer gone() {
  return refused(410, "operation-gone", "The result is not kept any more",
                 "The operation ended longer ago than results are kept.");
}

// The same for an id that was never made, and for one of another caller.
Answer nothing_here() {
  return refused(404, "no-operation", "No such operation",
                 "There is no operation of this caller under this path.");
}

std::string text_of(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

bool is_utf8(const std::string& text) {
  try {
    (void)ordered_json(text).dump();
    return true;
  } catch (const ordered_json::type_error&) {
    return false;
  }
}

// As JSON whose numbers stand as they were written; else as text; else in hex.
std::string body_members(const Response& response, const std::string& content_type) {
  const std::string& body = response.body;
  if (body.empty()) return "";
  if (is_json_type(content_type) && body.find('\0') == std::string::npos &&
      !body.starts_with("\xEF\xBB\xBF") && nlohmann::json::accept(body))
    return ",\"body\":" + body;
  if (is_utf8(body)) return ",\"body\":" + text_of(body);
  return ",\"body_hex\":" + text_of(key::hex(body));
}

bool is_content_type(const std::string& header) {
  return std::ranges::equal(header, std::string_view("content-type"),
                            [](char a, char b) { return key::lower_case(a) == b; });
}

std::string completed(const Response& response) {
  ordered_json headers = ordered_json::object();
  std::string content_type;
  for (const auto& [name, value] : response.headers) {
    ordered_json& there = headers[name];
    there = there.is_null() ? value : there.get<std::string>() + ", " + value;
    if (is_content_type(name)) content_type = value;
  }
  return R"({"status":"completed","response":{"status":)" + std::to_string(response.status) +
         ",\"headers\":" + text_of(headers) + body_members(response, content_type) + "}}";
}

std::string failed(const store::OperationState& operation) {
  const Answer answer = operation.rejected || operation.refused
                            ? rejected(operation.rejected.value_or("The other side refused it."))
                            : problem(500, "failed", "The request failed",
                                      "The request took no effect.", observe::Answered::failed);
  return R"({"status":"failed","problem":)" +
         answer.response.body.substr(0, answer.response.body.find_last_not_of('\n') + 1) + "}";
}

Answer ended(const store::OperationState& operation) {
  if (operation.status == "failed" || operation.refused) return shown(200, failed(operation));
  return shown(200, completed(flow::answer_of(operation.result)));
}

}  // namespace

std::optional<Operations> Operations::of(const config::GateConfig& config) {
  if (config.gate.operations_key.empty()) return std::nullopt;
  for (const config::GateRoute& route : config.gate.routes)
    if (route.accept) return Operations(config);
  return std::nullopt;
}

Operations::Operations(const config::GateConfig& config)
    : siv_(config.gate.operations_key),
      context_("hapax-operation-1 " + config.gate.scope),
      scope_(scope_of(config)) {
  for (const config::GateRoute& route : config.gate.routes)
    accepting_.push_back(route.accept.has_value());
}

std::string Operations::location_of(const std::string& tenant, const std::string& key) const {
  const std::string stored = key::encode_key(tenant);
  const std::string text = static_cast<char>(stored.size()) + stored + key::encode_key(key);
  return "/operations/" + key::base64url(siv_.seal(text, context_));
}

std::optional<store::OperationKey> Operations::opened(const std::string& id) const {
  const auto sealed = key::bytes_of_base64url(id);
  const auto text = sealed ? siv_.open(*sealed, context_) : std::nullopt;
  if (!text) return std::nullopt;
  const std::size_t tenant = static_cast<unsigned char>(text->front());
  return named(text->substr(1 + tenant), text->substr(1, tenant));
}

// The record's key is made of the gate's, so that it is the same however often it is accepted.
store::OperationKey Operations::named(std::string key, std::string tenant) const {
  std::string record = flow::published_key(scope_.scope, {key, tenant, {}}, kAcceptedName, 0);
  return {std::move(key), std::move(tenant), std::move(record)};
}

std::string Operations::record_key(const std::string& tenant, const std::string& key) const {
  return named(key::encode_key(key), key::encode_key(tenant)).record;
}

Answer Operations::answer(store::Session& session, const Request& request) const {
  const auto key = opened(request.parameters.front().second);
  if (!key || key->tenant != key::encode_key(request.tenant)) return nothing_here();
  for (int look = 0; look < kLooks; ++look) {
    const auto operation = store::read_operation(session, scope_, *key);
    if (!operation) return gone();
    if (!operation->has_outcome()) return operation->waits ? still_pending() : gone();
    if (operation->settled) return ended(*operation);
    if (store::settle_operations(session, scope_, {*key}, {operation->scope}) == 1)
      return ended(*operation);
  }
  return unavailable("The operation is being changed. Try again.");
}

bool Operations::settle_page(store::Session& session, store::WaitingOperation& after) const {
  const auto page = store::list_waiting_operations(session, scope_, after, kPage);
  std::vector<store::OperationKey> keys;
  std::vector<std::string> scopes;
  for (const store::WaitingOperation& one : page) {
    const auto path = std::ranges::find(scope_.paths, one.path);
    keys.push_back(named(one.key, one.tenant));
    scopes.push_back(scope_.scopes[static_cast<std::size_t>(path - scope_.paths.begin())]);
  }
  if (!page.empty()) store::settle_operations(session, scope_, keys, scopes);
  const bool last = page.size() < kPage;
  after = last ? store::WaitingOperation() : page.back();
  return last;
}

}  // namespace hapax::gate
