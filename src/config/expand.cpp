#include "config/expand.hpp"

#include <algorithm>
#include <cstdlib>

#include "config/file_text.hpp"

namespace hapax::config {
namespace {

bool is_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9');
  });
}

// `inside`: what stands between ${ and }.
std::variant<std::string, NotExpanded> variable(std::string_view inside,
                                                const Environment& environment) {
  const auto bar = inside.find(":-");
  const std::string name(inside.substr(0, bar));
  if (!is_name(name))
    return NotExpanded{"a ${…} holds no name of a variable: letters, digits and _ are allowed"};
  const auto value = environment(name);
  if (bar != std::string_view::npos && (!value || value->empty()))
    return std::string(inside.substr(bar + 2));
  if (!value) {
    return NotExpanded{"the environment variable " + name + " is not set; set it, or write ${" +
                       name + ":-default}"};
  }
  return *value;
}

std::variant<std::string, NotExpanded> with_variables(std::string_view written,
                                                      const Environment& environment) {
  std::string text;
  while (true) {
    const auto dollar = written.find('$');
    text += written.substr(0, dollar);
    if (dollar == std::string_view::npos) return text;
    written.remove_prefix(dollar + 1);
    if (written.starts_with('$')) {
      text += '$';
      written.remove_prefix(1);
      continue;
    }
    if (!written.starts_with('{'))
      return NotExpanded{"a $ stands alone; write $$ for a dollar, or ${NAME} for a variable"};
    const auto end = written.find('}');
    if (end == std::string_view::npos) return NotExpanded{"a ${ has no }"};
    auto value = variable(written.substr(1, end - 1), environment);
    if (std::holds_alternative<NotExpanded>(value)) return value;
    text += std::get<std::string>(value);
    written.remove_prefix(end + 1);
  }
}

std::variant<std::string, NotExpanded> content_of(const std::string& path,
                                                  std::vector<std::string>& warnings) {
  if (!path.starts_with('/')) {
    return NotExpanded{
        "a string that begins with @ names a file by its absolute path, as in "
        "@/run/secrets/name; write @@ for an @"};
  }
  auto file = read_value(path);
  if (const auto* error = std::get_if<NotRead>(&file))
    return NotExpanded{"cannot read the file " + path + ": " + error->why};
  auto& [text, open_to_others] = std::get<FileText>(file);
  if (open_to_others) warnings.push_back(open_to_others_warning("the secret", path));
  return std::move(text);
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

std::variant<std::string, NotExpanded> expand(std::string_view written,
                                              const Environment& environment,
                                              std::vector<std::string>& warnings) {
  const bool escaped = written.starts_with("@@");
  const bool file = !escaped && written.starts_with('@');
  auto text = with_variables(written.substr(escaped || file ? 1 : 0), environment);
  if (!file || std::holds_alternative<NotExpanded>(text)) return text;
  return content_of(std::get<std::string>(text), warnings);
}

std::string file_named_by(std::string_view written, const Environment& environment) {
  if (!written.starts_with('@') || written.starts_with("@@")) return "";
  const auto path = with_variables(written.substr(1), environment);
  return std::holds_alternative<std::string>(path) ? std::get<std::string>(path) : "";
}

std::vector<std::string> defaulted(std::string_view written, const Environment& environment) {
  std::vector<std::string> names;
  for (auto at = written.find('$'); at != std::string_view::npos; at = written.find('$', at)) {
    if (!written.substr(at + 1).starts_with('{')) {
      at += 2;
      continue;
    }
    const std::string_view inside = written.substr(at + 2, written.find('}', at) - at - 2);
    const auto bar = inside.find(":-");
    const std::string name(inside.substr(0, bar));
    at += 2 + inside.size();
    if (bar == std::string_view::npos) continue;
    const auto value = environment(name);
    if (!value || value->empty()) names.push_back(name);
  }
  return names;
}

bool is_indirect(std::string_view written) {
  return (written.starts_with('@') && !written.starts_with("@@")) ||
         written.find("${") != std::string_view::npos;
}

std::string literal_part(std::string_view written) {
  if (written.starts_with('@') && !written.starts_with("@@")) return "";
  const auto text = with_variables(written, [](const std::string&) { return std::string(); });
  return std::holds_alternative<std::string>(text) ? std::get<std::string>(text)
                                                   : std::string(written);
}

}  // namespace hapax::config
