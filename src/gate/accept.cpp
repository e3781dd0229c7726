#include "gate/accept.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "gate/problem.hpp"
#include "key/exact_json.hpp"
#include "key/json_pointer.hpp"

namespace hapax::gate {
namespace {

// Whether a worker gets this header, beside those of the trace. These are headers that the gate
// sets itself, and the content type. A client cannot name a header that begins with a colon.
bool is_handed_on(std::string_view header) {
  return (header.starts_with(':') && header != ":fingerprint") || header == "content-type";
}

// A text as it is, another value as canonical JSON. Nothing: there is no value at the pointer.
std::optional<std::string> value_at(const std::string& pointer, const Message& message) {
  const auto parsed = key::parse_exact(*message.payload());
  const auto* const json = std::get_if<nlohmann::json>(&parsed);
  const nlohmann::json* const value = json == nullptr ? nullptr : key::find(*json, pointer);
  if (value == nullptr || value->is_structured() || value->is_null()) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  return key::is_exact_number(*value) ? key::number_text(*value) : value->dump();
}

// Runs in the transaction that claims the gate's key. So the record exists if and only if the
// client is answered 202.
class Accept final : public Handler {
 public:
  Accept(const config::Gate& gate, const Operations& operations)
      : gate_(gate), operations_(operations) {}

  void on_start(const Setup& setup) override {
    const auto route = std::ranges::find(gate_.routes, setup.topic, &config::GateRoute::path);
    if (route == gate_.routes.end() || !route->accept)
      throw std::logic_error("no route of this path accepts");
    accept_ = &*route->accept;
  }

  void handle(const Message& message, Context& context) override {
    const std::string tenant(message.header(":tenant").value_or(""));
    const std::string key(message.header("idempotency-key").value_or(""));
    const std::string fingerprint(message.header(":fingerprint").value_or(""));
    Outgoing record{
        .key = key_of(message).value_or(operations_.record_key(tenant, key, fingerprint)),
        .payload = std::string(*message.payload()),
        .name = config::kAcceptedName + (" " + fingerprint)};
    for (const Header& header : message.headers())
      if (is_handed_on(header.name))
        record.headers.emplace_back(header.name, std::string(header.value.value_or("")));
    try {
      context.publish(accept_->topic, std::move(record));
    } catch (const Reject&) {  // the words of the exception are for operators
      const Response response = too_large();
      context.respond(response.status, response.headers, response.body);
      throw;
    }
    context.respond(
        202,
        {{"Content-Type", "application/json"}, {"Location", operations_.location_of(tenant, key)}},
        "{\"status\":\"pending\"}\n");
  }

 private:
  // Records with one key keep their order. Nothing: each record has a key of its own.
  std::optional<std::string> key_of(const Message& message) const {
    if (!accept_->key_pointer.empty()) {
      if (auto value = value_at(accept_->key_pointer, message)) return value;
      throw Reject("The body is not JSON with a text or a number at " + accept_->key_pointer + ".");
    }
    if (accept_->key_header.empty()) return std::nullopt;
    if (const auto value = message.header(accept_->key_header)) return std::string(*value);
    throw Reject("The request has no header " + accept_->key_header + ".");
  }

  static Response too_large() {
    return refused(413, "body-too-large", "The body is too large",
                   "The topic that takes requests does not take one of this size.")
        .response;
  }

  const config::Gate& gate_;
  const Operations& operations_;
  const config::GateAccept* accept_ = nullptr;
};

// Never called, because Operations::answer() answers this route.
class Unused final : public Handler {
  void handle(const Message& /*message*/, Context& /*context*/) override {
    throw std::logic_error("the path of the operations has no handler");
  }
};

}  // namespace

std::vector<HandlerFactory> own_handlers(const config::Gate& gate, const Operations* operations) {
  if (operations == nullptr) return {};
  return {{config::kAcceptHandler,
           [&gate, operations] { return std::make_unique<Accept>(gate, *operations); }},
          {config::kOperationsHandler, [] { return std::make_unique<Unused>(); }}};
}

}  // namespace hapax::gate
