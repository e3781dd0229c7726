// Protobuf's bytes under any schema: what decodes is JSON, the same each time, and no longer than
// max_text() allows; everything else is NotDecodable. The input is a schema, a NUL, bytes.
#include <nlohmann/json.hpp>
#include <optional>

#include "fuzz.hpp"
#include "payload/protobuf/decoder.hpp"

using namespace hapax;

namespace {

std::optional<std::string> decoded(const payload::ProtobufDecoder& decoder,
                                   std::string_view bytes) {
  try {
    return decoder.decode({.schema = {}, .indexes = {0}, .body = bytes});
  } catch (const payload::NotDecodable&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input = fuzz::text_of(data, size);
  const std::size_t end = input.find('\0');
  if (end == std::string::npos) return 0;
  std::optional<payload::ProtobufDecoder> decoder;
  try {
    decoder.emplace(payload::SchemaText{"PROTOBUF", input.substr(0, end), {}});
  } catch (const payload::NotDecodable&) {
    return 0;
  }
  const std::string bytes = input.substr(end + 1);
  const auto text = decoded(*decoder, bytes);
  fuzz::require(text == decoded(*decoder, bytes), "the same bytes decode to something else");
  if (!text) return 0;
  fuzz::require(text->size() <= payload::max_text(bytes.size()), "the JSON is too long");
  fuzz::require(nlohmann::json::accept(*text), "what decodes is no JSON");
  return 0;
}
