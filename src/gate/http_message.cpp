#include "gate/http_message.hpp"

#include <algorithm>
#include <chrono>
#include <string>

#include "gate/problem.hpp"
#include "key/key_source.hpp"

namespace hapax::gate {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

std::string lower(beast::string_view name) {
  std::string text(name.data(), name.size());
  std::ranges::transform(text, text.begin(), key::lower_case);
  return text;
}

std::string copy_of(beast::string_view view) { return {view.data(), view.size()}; }

// Else it has no Content-Length either.
bool may_have_body(const Answer& answer) {
  return answer.response.status != 204 && answer.response.status != 304;
}

template <class Message>
void fill(Message& message, const Answer& answer, const config::Gate& gate) {
  message.version(11);
  message.result(static_cast<unsigned>(answer.response.status));
  message.set(
      http::field::date,
      http_date(std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now())));
  for (const auto& [name, value] : answer.response.headers) message.insert(name, value);
  // Else a cache may keep a GET's answer, and a 404 or 410, and give it to another caller.
  if (message.count(http::field::cache_control) == 0)
    message.set(http::field::cache_control, "no-store");
  if (answer.is_stored()) {
    const auto lifetime = std::chrono::ceil<std::chrono::seconds>(gate.retention).count();
    message.set("Idempotency-Key-Lifetime", std::to_string(lifetime));
    if (!answer.expires.empty()) message.set("Idempotency-Key-Expires", answer.expires);
  }
  if (answer.how == observe::Answered::replayed) message.set("Idempotent-Replayed", "true");
  if (!gate.rules.empty() && answer.response.status >= 400 && !answer.is_stored())
    message.insert(http::field::link, "<" + gate.rules + ">; rel=\"describedby\"");
}

}  // namespace

Head head_of(const http::request<http::string_body>& message) {
  Head head{
      copy_of(message.method_string()), copy_of(message.target()), message.version() == 11, {}, {}};
  for (const auto& field : message)
    head.headers.emplace_back(lower(field.name_string()), copy_of(field.value()));
  return head;
}

HttpAnswer http_of(const Answer& answer, const config::Gate& gate, bool head_only) {
  if (head_only) {
    http::response<http::empty_body> message;
    fill(message, answer, gate);
    if (may_have_body(answer)) message.content_length(answer.response.body.size());
    return message;
  }
  http::response<http::string_body> message;
  fill(message, answer, gate);
  message.body() = answer.response.body;
  if (may_have_body(answer)) message.prepare_payload();
  return message;
}

}  // namespace hapax::gate
