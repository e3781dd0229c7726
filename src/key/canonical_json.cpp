#include "key/canonical_json.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "key/exact_json.hpp"
#include "key/json_pointer.hpp"

namespace hapax::key {
namespace {

using nlohmann::json;

class Writer {
 public:
  explicit Writer(std::vector<const json*> left_out) : left_out_(std::move(left_out)) {}

  void value(const json& value) {
    if (value.is_object())
      object(value.get_ref<const json::object_t&>());
    else if (value.is_array())
      array(value.get_ref<const json::array_t&>());
    else if (value.is_string())
      string(value.get_ref<const std::string&>());
    else if (is_exact_number(value))
      text += number_text(value);
    else if (value.is_boolean())
      text += value.get<bool>() ? "true" : "false";
    else
      text += "null";
  }

  std::string text;

 private:
  // nlohmann keeps members sorted by std::less<std::string>, which compares unsigned bytes.
  void object(const json::object_t& members) {
    text += '{';
    bool first = true;
    for (const auto& [name, member] : members) {
      if (is_left_out(member)) continue;
      if (!first) text += ',';
      first = false;
      string(name);
      text += ':';
      value(member);
    }
    text += '}';
  }

  void array(const json::array_t& elements) {
    text += '[';
    bool first = true;
    for (const json& element : elements) {
      if (is_left_out(element)) continue;
      if (!first) text += ',';
      first = false;
      value(element);
    }
    text += ']';
  }

  void string(std::string_view bytes) {
    text += '"';
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      // The bytes are valid UTF-8 (parse_exact), so C2 and its follower are always both there.
      if (byte == 0xC2 && static_cast<unsigned char>(bytes[i + 1]) < 0xA0)
        unicode_escape(static_cast<unsigned char>(bytes[++i]));
      else if (byte < 0x20 || byte == 0x7F)
        control(byte);
      else if (byte == '"' || byte == '\\')
        (text += '\\') += bytes[i];
      else
        text += bytes[i];
    }
    text += '"';
  }

  void control(unsigned char byte) {
    constexpr std::string_view kShort = "\b\t\n\f\r";
    constexpr std::string_view kLetter = "btnfr";
    const std::size_t which = kShort.find(static_cast<char>(byte));
    if (which == std::string_view::npos) return unicode_escape(byte);
    text += '\\';
    text += kLetter[which];
  }

  void unicode_escape(unsigned char code_point) {
    constexpr std::string_view kHex = "0123456789abcdef";
    text += "\\u00";
    text += kHex[code_point >> 4];
    text += kHex[code_point & 15];
  }

  bool is_left_out(const json& value) const {
    return std::find(left_out_.begin(), left_out_.end(), &value) != left_out_.end();
  }

  std::vector<const json*> left_out_;
};

}  // namespace

std::string canonical_json(const json& exact, std::span<const std::string> without) {
  std::vector<const json*> left_out;
  for (const std::string& pointer : without)
    if (const json* value = find(exact, pointer)) left_out.push_back(value);
  Writer writer(std::move(left_out));
  writer.value(exact);
  return std::move(writer.text);
}

}  // namespace hapax::key
