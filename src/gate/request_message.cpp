#include "gate/request_message.hpp"

#include "key/canonical_json.hpp"
#include "key/exact_json.hpp"
#include "key/key_source.hpp"
#include "key/sha256.hpp"

namespace hapax::gate {
namespace {

std::string header_of(const Request& request, std::string_view name) {
  for (const auto& [header, value] : request.headers)
    if (header == name) return value;
  return {};
}

// Removes blanks, and makes lower case of all but the values of parameters. The value of
// `boundary`, for example, would change its meaning.
std::string bare(const std::string& content_type) {
  std::string type;
  bool in_value = false, quoted = false, escaped = false;
  for (const char c : content_type) {
    if (quoted) {
      type += c;
      quoted = escaped || c != '"';
      escaped = !escaped && c == '\\';
      continue;
    }
    if (c == ' ' || c == '\t') continue;
    quoted = c == '"';
    if (c == '=' || c == ';') in_value = c == '=';
    type += in_value ? c : key::lower_case(c);
  }
  return type;
}

std::string body_digest(const Request& request, const std::string& content_type) {
  if (is_json_type(content_type) && !request.body.empty()) {
    const auto parsed = key::parse_exact(request.body);
    if (const auto* json = std::get_if<nlohmann::json>(&parsed))
      return "json:" + key::hex(key::sha256(key::canonical_json(*json)));
  }
  return "bytes:" + key::hex(key::sha256(request.body));
}

}  // namespace

bool is_json_type(const std::string& content_type) {
  const std::string type = bare(content_type);
  const std::string media = type.substr(0, type.find(';'));
  return media == "application/json" || media.ends_with("+json");
}

key::Fingerprint fingerprint_of(const Request& request) {
  const std::string type = bare(header_of(request, "content-type"));
  std::string all;
  for (const std::string& part :
       {request.method, request.path, request.query, type, body_digest(request, type)})
    all += std::to_string(part.size()) + ":" + part + ",";
  return {key::sha256(all), kFingerprintRule};
}

RequestMessage::RequestMessage(const Request& request, const Callers& callers,
                               const std::string& topic, std::int64_t offset,
                               const key::Fingerprint& fingerprint)
    : fingerprint_(key::hex(fingerprint.digest)) {
  for (const auto& [name, value] : request.headers)
    if (name != "idempotency-key" && !callers.is_credential(name))
      headers_.push_back({name, value});
  if (request.is_guarded()) headers_.push_back({"idempotency-key", request.key});
  if (request.is_guarded()) headers_.push_back({":fingerprint", fingerprint_});
  headers_.push_back({":method", request.method});
  headers_.push_back({":path", request.path});
  headers_.push_back({":query", request.query});
  headers_.push_back({":tenant", request.tenant});
  names_.reserve(request.parameters.size());  // headers_ points into it
  for (const auto& [name, value] : request.parameters)
    headers_.push_back({names_.emplace_back(":path." + name), value});
  message_.emplace(Message::Parts{
      .coordinates = {topic, 0, offset}, .payload = request.body, .headers = headers_});
}

}  // namespace hapax::gate
