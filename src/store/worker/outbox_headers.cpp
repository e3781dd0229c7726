#include "store/worker/outbox_headers.hpp"

#include <nlohmann/json.hpp>

#include "key/sha256.hpp"
#include "store/quote.hpp"

namespace hapax::store {
namespace {

using nlohmann::json;

json header_json(const std::optional<std::string>& value) {
  if (!value) return nullptr;
  try {
    (void)json(*value).dump();  // refuses what is not UTF-8
    return *value;
  } catch (const json::type_error&) {
    return {{"hex", key::hex(*value)}};
  }
}

std::optional<std::string> header_value(const json& value) {
  if (value.is_null()) return std::nullopt;
  if (value.is_object()) return bytes_of_hex(value.at("hex").get<std::string>());
  return value.get<std::string>();
}

}  // namespace

std::string outbox_headers_text(const OutboxHeaders& headers) {
  json text = json::array();
  for (const auto& [name, value] : headers) text.push_back(json::array({name, header_json(value)}));
  return text.dump();
}

OutboxHeaders outbox_headers_of(const std::string& text) {
  OutboxHeaders headers;
  if (text == "[]") return headers;
  for (const json& header : json::parse(text))
    headers.emplace_back(header.at(0).get<std::string>(), header_value(header.at(1)));
  return headers;
}

}  // namespace hapax::store
