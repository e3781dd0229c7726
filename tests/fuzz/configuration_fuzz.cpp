// No text of a configuration crashes its reader. If libpq takes a part of a url for a password, the
// shown url does not hold it.
#include <libpq-fe.h>

#include <cctype>
#include <memory>
#include <string_view>

#include "config/load.hpp"
#include "config/redact.hpp"
#include "fuzz.hpp"

namespace {

using namespace hapax;

// Stands in the dictionary. A url that holds it once, in a password, must not show it.
constexpr std::string_view kSecret = "S3CR3T";

bool is_secret_keyword(std::string_view keyword) {
  return keyword == "password" || keyword == "sslpassword" || keyword == "passfile";
}

// As libpq reads it: a backslash and a %53 may spell the secret a second time.
std::string without_escapes(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') continue;
    const bool hex = text[i] == '%' && i + 2 < text.size() && std::isxdigit(text[i + 1]) != 0 &&
                     std::isxdigit(text[i + 2]) != 0;
    plain += hex ? static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)) : text[i];
    if (hex) i += 2;
  }
  return plain;
}

bool stands_once(const std::string& text) {
  const auto at = text.find(kSecret);
  return at != std::string::npos && text.find(kSecret, at + 1) == std::string::npos;
}

// Whether the secret stands there once (of a keyword that comes twice libpq shows only the last),
// and libpq takes it for a password.
bool holds_a_secret(const std::string& url) {
  if (!stands_once(url) || !stands_once(without_escapes(url))) return false;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(
      PQconninfoParse(url.c_str(), nullptr), PQconninfoFree);
  for (const PQconninfoOption* option = parsed.get();
       option != nullptr && option->keyword != nullptr; ++option)
    if (option->val != nullptr && is_secret_keyword(option->keyword) &&
        std::string_view(option->val).find(kSecret) != std::string_view::npos)
      return true;
  return false;
}

// A file named by @ would be read: a pipe blocks, and /dev/zero has no end.
bool names_a_file(std::string_view text) {
  return text.find("\"@") != std::string_view::npos ||
         text.find("\\u0040") != std::string_view::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = fuzz::text_of(data, size);
  if (text.find('\0') == std::string::npos && holds_a_secret(text))
    fuzz::require(config::redact_url(text).find(kSecret) == std::string::npos, "a secret is shown");
  if (names_a_file(text)) return 0;
  const config::Loaded loaded = config::load_text(text, [](const std::string& name) {
    return name == "SET" ? std::optional<std::string>("value") : std::nullopt;
  });
  fuzz::require(loaded.config.has_value() == loaded.problems.empty(),
                "a configuration with problems, or none of both");
  return 0;
}
