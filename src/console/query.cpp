#include "console/query.hpp"

#include <charconv>
#include <variant>

#include "cli/command.hpp"
#include "cli/operator.hpp"
#include "key/exact_json.hpp"

namespace hapax::console {
namespace {

[[noreturn]] void refuse(const std::string& sentence) { throw app::Stop(app::kUsage, sentence); }

// PostgreSQL's text holds no NUL.
void require_no_nul(const std::string& name, const std::string& text) {
  if (text.find('\0') != std::string::npos) refuse(name + " holds a NUL byte");
}

}  // namespace

store::OptionalText text_of(const observe::PageRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  if (found == request.query.end() || found->second.empty()) return std::nullopt;
  require_no_nul(name, found->second);
  return found->second;
}

std::optional<std::int64_t> number_of(const observe::PageRequest& request,
                                      const std::string& name) {
  const store::OptionalText text = text_of(request, name);
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || rest != end) refuse(name + " is no number: " + *text);
  return number;
}

app::LetterFilter filter_of(const observe::PageRequest& request) {
  app::LetterFilter filter;
  filter.topic = text_of(request, "topic");
  filter.handler = text_of(request, "handler");
  filter.reason = text_of(request, "reason");
  filter.error = text_of(request, "error");
  filter.key = text_of(request, "key");
  filter.scope = text_of(request, "scope");
  filter.tenant = text_of(request, "tenant");
  filter.since = text_of(request, "since").value_or("");
  filter.until = text_of(request, "until").value_or("");
  return filter;
}

app::Json body_of(const observe::PageRequest& request) {
  const auto parsed = key::parse_exact(request.body);  // it bounds the depth
  const auto* const body = std::get_if<nlohmann::json>(&parsed);
  if (body == nullptr || !body->is_object()) refuse("the order is no object of JSON");
  return *body;
}

std::string text_in(const app::Json& body, const char* name) {
  const auto found = body.find(name);
  if (found == body.end() || found->is_null()) return {};
  if (!found->is_string()) refuse(std::string(name) + " is no text");
  return found->get<std::string>();
}

std::string need_text(const app::Json& body, const char* name) {
  std::string text = text_in(body, name);
  if (text.empty()) refuse(std::string(name) + " is missing");
  require_no_nul(name, text);
  return text;
}

std::string need_line(const app::Json& body, const char* name) {
  std::string text = need_text(body, name);
  if (const std::string error = app::line_error(text); !error.empty()) refuse(name + (' ' + error));
  return text;
}

store::LetterIds need_ids(const app::Json& body, const char* name) {
  const auto found = body.find(name);
  if (found == body.end() || !found->is_array()) refuse(std::string(name) + " is no list");
  store::LetterIds ids;
  for (const app::Json& id : *found) {
    if (!id.is_number_integer()) refuse(std::string(name) + " holds what is no id");
    ids.push_back(id.get<std::int64_t>());
  }
  return ids;
}

bool is_dry_run(const app::Json& body) {
  const auto found = body.find("dry_run");
  if (found == body.end()) return false;
  if (!found->is_boolean()) refuse("dry_run is neither true nor false");
  return found->get<bool>();
}

}  // namespace hapax::console
