#include "console/mask.hpp"

#include <variant>

#include "console/bytes.hpp"
#include "key/canonical_json.hpp"
#include "key/exact_json.hpp"
#include "key/json_pointer.hpp"

namespace hapax::console {
namespace {

// In an answer as Context::respond stores it, the body is a text of its own. The status and the
// headers stay.
bool mask_response(std::span<const std::string> mask, nlohmann::json& document) {
  const auto response = document.find("hapax:response");
  if (response == document.end() || !response->is_object()) return false;
  bool hides = false;
  for (const auto& [name, value] : response->items()) {
    if (name == "status" || name == "headers" || value == "") continue;
    Masked body{.hides = true, .rest = std::nullopt};  // body_hex is no text, so no JSON
    if (name == "body" && value.is_string()) body = masked(mask, value.get<std::string>());
    if (!body.hides) continue;
    value = body.rest.value_or(kMasked);
    hides = true;
  }
  return hides;
}

}  // namespace

Masked masked(std::span<const std::string> mask, const std::optional<std::string>& bytes) {
  if (mask.empty() || !bytes) return {};
  auto parsed = key::parse_exact(*bytes);
  auto* const document = std::get_if<nlohmann::json>(&parsed);
  if (document == nullptr) return {.hides = true, .rest = std::nullopt};
  Masked result{.hides = mask_response(mask, *document), .rest = std::nullopt};
  for (const std::string& pattern : mask)
    key::for_each_match(*document, pattern, [&](nlohmann::json& value) {
      value = kMasked;
      result.hides = true;
    });
  if (result.hides) result.rest = key::canonical_json(*document);
  return result;
}

app::Json shown_payload(std::span<const std::string> mask,
                        const std::optional<std::string>& bytes) {
  const Masked found = masked(mask, bytes);
  if (!found.hides) return shown_bytes(bytes, kShownPayload);
  app::Json shown = found.rest ? shown_bytes(found.rest, kShownPayload) : app::Json::object();
  shown["bytes"] = bytes->size();
  shown["masked"] = true;
  return shown;
}

void mask_member(std::span<const std::string> mask, app::Json& row, const char* name) {
  app::Json& value = row.at(name);
  if (!value.is_string()) return;
  const Masked found = masked(mask, value.get<std::string>());
  if (!found.hides) return;
  value = found.rest.value_or(kMasked);
  row[std::string(name) + "_masked"] = true;
}

}  // namespace hapax::console
