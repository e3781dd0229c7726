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
constexpr int kLooks = 3;  // until the outcome does not change any more

Answer shown(int status, std::string body) {
  Answer answer{{.status = status, .body = std::move(body) + "\n"}, observe::Answered::unguarded};
  answer.response.headers = {{"Content-Type", "application/json"}};
  return answer;
}

Answer still_pending() {
  Answer answer = shown(202, R"({"status":"pending"})");
  answer.response.headers.emplace_back("Retry-After", "1");
  return answer;
}

Answer gone() {
  return refused(
      410, "operation-gone", "The result is not kept any more",
      "The operation ended longer ago than results are kept, or the database was restored "
      "since. Ask before you send it again.");
}

// The answer is the same for an id that was never made and for one of another caller.
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

// JSON keeps its numbers as they were written. Other text is a string, and other bytes are hex.
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

std::string failed(const store::OperationOutcome& outcome) {
  const Answer answer =
      outcome.rejected || outcome.refused
          ? rejected(outcome.rejected.value_or("The other side refused it."))
      : outcome.given_up
          ? problem(409, "outcome-unknown", "The outcome is not known",
                    "The request may have taken effect. Ask before you send it under another key.",
                    observe::Answered::failed)
          : problem(500, "failed", "The request failed", "The request took no effect.",
                    observe::Answered::failed);
  return R"({"status":")" + std::string(outcome.given_up ? "unknown" : "failed") +
         R"(","problem":)" +
         answer.response.body.substr(0, answer.response.body.find_last_not_of('\n') + 1) + "}";
}

Answer ended(const store::OperationOutcome& outcome) {
  if (outcome.status == "failed" || outcome.refused || outcome.given_up)
    return shown(200, failed(outcome));
  return shown(200, completed(flow::answer_of(outcome.result)));
}

}  // namespace

std::optional<Operations> Operations::of(const config::GateConfig& config) {
  if (config.gate.operations_key.empty()) return std::nullopt;
  for (const config::GateRoute& route : config.gate.routes)
    if (route.accept) return Operations(config);
  return std::nullopt;
}

Operations::Operations(const config::GateConfig& config)
    : gate_(config.gate),
      retention_(std::chrono::ceil<std::chrono::seconds>(config.gate.retention)),
      siv_(config.gate.operations_key),
      context_("hapax-operation-1 " + config.gate.scope) {}

std::string Operations::location_of(const std::string& tenant, const std::string& key) const {
  const std::string stored = key::encode_key(tenant);
  const std::string text = static_cast<char>(stored.size()) + stored + key::encode_key(key);
  return std::string(flow::kOperations) + key::base64url(siv_.seal(text, context_));
}

std::optional<store::OperationKey> Operations::opened(const std::string& id) const {
  const auto sealed = key::bytes_of_base64url(id);
  const auto text = sealed ? siv_.open(*sealed, context_) : std::nullopt;
  if (!text) return std::nullopt;
  const std::size_t tenant = static_cast<unsigned char>(text->front());
  return store::OperationKey{text->substr(1 + tenant), gate_.scope, text->substr(1, tenant)};
}

// Made of the gate's key and the request, so each acceptance gives the same.
std::string Operations::record_of(const store::OperationKey& key,
                                  const std::string& fingerprint) const {
  return flow::published_key(key.scope, {key.key, key.tenant, {}},
                             config::kAcceptedName + (" " + fingerprint), 0);
}

std::string Operations::record_key(const std::string& tenant, const std::string& key,
                                   const std::string& fingerprint) const {
  return record_of({key::encode_key(key), gate_.scope, key::encode_key(tenant)}, fingerprint);
}

void Operations::keep_outcome(store::Transaction& transaction, const Request& request,
                              const std::string& fingerprint) const {
  store::keep_outcome(transaction,
                      {record_key(request.tenant, request.key, fingerprint),
                       gate_.routes[request.route].accept->scope},
                      retention_);
}

const config::GateRoute* Operations::route_of(const std::string& path) const {
  const auto route = std::ranges::find(gate_.routes, path, &config::GateRoute::path);
  return route == gate_.routes.end() || !route->accept ? nullptr : &*route;
}

Answer Operations::answer(store::Session& session, const Request& request) const {
  const auto key = opened(request.parameters.front().second);
  if (!key || key->tenant != key::encode_key(request.tenant)) return nothing_here();
  for (int look = 0; look < kLooks; ++look) {
    const auto accepted = store::read_acceptance(session, *key);
    if (!accepted) return gone();
    const config::GateRoute* const route = route_of(accepted->path);
    // A handler answered the request of this key, so the operation's own key has expired since.
    if (route == nullptr &&
        std::ranges::count(gate_.routes, accepted->path, &config::GateRoute::path) > 0)
      return gone();
    if (route == nullptr)
      return unavailable("This gate does not have the route of the operation. Try again.");
    if (!route->tenants.empty() && std::ranges::count(route->tenants, request.tenant) == 0)
      return nothing_here();
    const store::OutcomePlace place{record_of(*key, accepted->fingerprint), route->accept->scope};
    const auto outcome = store::read_outcome(session, *key, place, retention_);
    // If the worker has its key, an operator lets it run again, or its replay calls to the outside.
    const bool waits = accepted->waits || outcome.status;
    if (!outcome.is_one()) return waits ? still_pending() : gone();
    if (outcome.settled) return ended(outcome);
    if (store::settle_operations(session, {*key}, {place}, retention_) == 1) return ended(outcome);
  }
  return unavailable("The operation is being changed. Try again.");
}

Page Operations::settle_page(store::Session& session, store::WaitingOperation& after) const {
  std::vector<std::string> paths;
  for (const config::GateRoute& route : gate_.routes)
    if (route.accept) paths.push_back(route.path);
  const auto page = store::list_waiting_operations(session, gate_.scope, paths, after, kPage);
  std::vector<store::OperationKey> keys;
  std::vector<store::OutcomePlace> places;
  for (const store::WaitingOperation& one : page) {
    keys.push_back({one.key, gate_.scope, one.tenant});
    places.push_back({record_of(keys.back(), one.fingerprint), route_of(one.path)->accept->scope});
  }
  Page done{.was_last = page.size() < kPage};
  if (!page.empty()) done.settled = store::settle_operations(session, keys, places, retention_);
  after = done.was_last ? store::WaitingOperation() : page.back();
  return done;
}

}  // namespace hapax::gate
