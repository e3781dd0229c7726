#include "payload/json_text.hpp"

#include <nlohmann/json.hpp>

#include "key/base64.hpp"
#include "payload/decoder.hpp"

namespace hapax::payload {

void JsonText::string(std::string_view text) {
  std::string quoted;
  try {
    quoted = nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw NotDecodable(refusal_ + "a string is not UTF-8");
  }
  add(quoted);
}

void JsonText::base64(std::string_view bytes) {
  add("\"");
  add(key::base64(bytes));
  add("\"");
}

void JsonText::too_long() const {
  throw NotDecodable(refusal_ + "its JSON would have more than " + std::to_string(max_) + " bytes");
}

}  // namespace hapax::payload
