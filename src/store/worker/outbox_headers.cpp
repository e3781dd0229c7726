#include "store/worker/outbox_headers.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

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
  if (!value.is_object()) return value.get<std::string>();
  const auto hex = value.at("hex").get<std::string>();
  if (hex.size() % 2 != 0 || hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw std::invalid_argument("a value is not hex");
  return bytes_of_hex(hex);
}

}  // namespace

std::string outbox_headers_text(const OutboxHeaders& headers) {
  json text = json::array();
  for (const auto& [name, value] : headers)
    text.push_back(json::array({header_json(name), header_json(value)}));
  return text.dump();
}

OutboxHeaders outbox_headers_of(const std::string& text) {
  OutboxHeaders headers;
  if (text == "[]") return headers;
  const json all = json::parse(text);
  if (!all.is_array()) throw std::invalid_argument("no array");
  for (const json& header : all) {
    if (!header.is_array() || header.size() != 2) throw std::invalid_argument("no pair");
    headers.emplace_back(header_value(header[0]).value(), header_value(header[1]));
  }
  return headers;
}

}  // namespace hapax::store
