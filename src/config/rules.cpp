#include "config/rules.hpp"

#include <charconv>

#include "config/units.hpp"

namespace hapax::config {
namespace {

bool is_indirect_string(const nlohmann::json& value) {
  return value.is_string() && is_indirect(value.get_ref<const std::string&>());
}

}  // namespace

std::optional<std::string> Text::operator()(Reader& reader, const Value& value) const {
  const auto text = reader.text(value, what);
  if (!text) return text;
  const bool blank = !may_be_blank && text->find_first_not_of(" \t\r\n") == std::string::npos;
  if (!text->empty() && !blank && text->size() <= longest) return text;
  reader.refuse(value, what + (text->empty() ? ""
                               : blank       ? ", not only blanks"
                                       : ", of at most " + std::to_string(longest) + " bytes"));
  return std::nullopt;
}

std::optional<bool> Flag::operator()(Reader& reader, const Value& value) const {
  const std::string allowed = "true, false";
  if (value.json->is_boolean()) return value.json->get<bool>();
  if (is_indirect_string(*value.json)) {
    const auto text = reader.text(value, allowed);
    if (!text) return std::nullopt;
    if (*text == "true" || *text == "false") return *text == "true";
  }
  reader.refuse(value, allowed);
  return std::nullopt;
}

std::optional<std::uint64_t> Whole::operator()(Reader& reader, const Value& value) const {
  const std::string allowed =
      "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
  std::optional<std::uint64_t> number;
  if (value.json->is_number_unsigned()) number = value.json->get<std::uint64_t>();
  if (is_indirect_string(*value.json)) {
    const auto text = reader.text(value, allowed);
    if (!text) return std::nullopt;
    std::uint64_t parsed = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), parsed);
    if (error == std::errc{} && end == text->data() + text->size()) number = parsed;
  }
  if (number && *number >= min && *number <= max) return number;
  reader.refuse(value, allowed);
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> Duration::operator()(Reader& reader,
                                                              const Value& value) const {
  const std::string allowed = "a duration from \"" + format_duration(min) + "\" to \"" +
                              format_duration(max) + "\", with its unit: ms, s, m, h or d";
  const auto text = reader.text(value, allowed);
  if (!text) return std::nullopt;
  const auto duration = parse_duration(*text);
  if (duration && *duration >= min && *duration <= max) return duration;
  reader.refuse(value, allowed);
  return std::nullopt;
}

std::optional<std::uint64_t> Size::operator()(Reader& reader, const Value& value) const {
  const std::string allowed = "a size from \"" + format_size(min) + "\" to \"" + format_size(max) +
                              "\", in bytes or with a unit: KiB, MiB or GiB";
  std::optional<std::uint64_t> bytes;
  if (value.json->is_number_unsigned()) {
    bytes = value.json->get<std::uint64_t>();
  } else {
    const auto text = reader.text(value, allowed);
    if (!text) return std::nullopt;
    bytes = parse_size(*text);
  }
  if (bytes && *bytes >= min && *bytes <= max) return bytes;
  reader.refuse(value, allowed);
  return std::nullopt;
}

}  // namespace hapax::config
