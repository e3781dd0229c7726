// A decoder's bytes under any schema: what decodes is JSON, the same each time, and no longer than
// max_text() allows; everything else is NotDecodable.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "fuzz.hpp"
#include "payload/decoder.hpp"
#include "payload/framing.hpp"

namespace hapax::fuzz {

// The input is a schema, `separator`, bytes.
template <class Decoder>
void decode(const char* format, char separator, const std::vector<int>& indexes,
            const std::string& input) {
  const std::size_t end = input.find(separator);
  if (end == std::string::npos) return;
  std::optional<Decoder> decoder;
  try {
    decoder.emplace(payload::SchemaText{format, input.substr(0, end), {}});
  } catch (const payload::NotDecodable&) {
    return;
  }
  const std::string bytes = input.substr(end + 1);
  const auto decoded = [&]() -> std::optional<std::string> {
    try {
      return decoder->decode({.schema = {}, .indexes = indexes, .body = bytes});
    } catch (const payload::NotDecodable&) {
      return std::nullopt;
    }
  };
  const auto text = decoded();
  require(text == decoded(), "the same bytes decode to something else");
  if (!text) return;
  require(text->size() <= payload::max_text(bytes.size()), "the JSON is too long");
  require(nlohmann::json::accept(*text), "what decodes is no JSON");
}

}  // namespace hapax::fuzz
