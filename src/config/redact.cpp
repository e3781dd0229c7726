#include "config/redact.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace hapax::config {
namespace {

// password, sslpassword, passfile; and what libpq would decode to one of them.
bool is_secret_keyword(std::string_view name) {
  return name.find("pass") != std::string_view::npos || name.find('%') != std::string_view::npos;
}

void hide_if_there(std::string& result, std::string_view value) {
  if (!value.empty()) result += kHidden;
}

// Whether what libpq would take for a port is none: a password whose host was forgotten, or whose /
// was not escaped. `rest`: what follows "postgresql://", without an @ before its first /.
bool has_bad_port(std::string_view rest) {
  const std::string_view hosts = rest.substr(0, rest.find_first_of("/?"));
  std::size_t from = 0;
  while (from <= hosts.size()) {
    const auto end = std::min(hosts.size(), hosts.find(',', from));
    std::string_view host = hosts.substr(from, end - from);
    if (host.starts_with('[')) host.remove_prefix(std::min(host.size(), host.find(']')));
    const auto colon = std::min(host.size(), host.find(':'));
    const auto port = host.substr(std::min(host.size(), colon + 1));
    if (port.find_first_not_of("0123456789") != std::string_view::npos) return true;
    from = end + 1;
  }
  return false;
}

// `rest`: what follows "postgresql://". libpq ends the password at the first @. This ends it at the
// last one, so that a password with an @ that should have been %40 does not show its tail.
std::string redact_uri(std::string_view scheme, std::string_view rest) {
  std::string result(scheme);
  const auto colon = rest.find(':');
  const auto at = rest.rfind('@');
  // In a password that was not escaped, or in a parameter that may be one: hapax cannot tell.
  if (at != std::string_view::npos && rest.find('?') < at) return result += kHidden;
  if (at != std::string_view::npos && colon < at) {
    result += rest.substr(0, colon + 1);
    hide_if_there(result, rest.substr(colon + 1, at - colon - 1));
    rest.remove_prefix(at);
  } else if (at == std::string_view::npos && has_bad_port(rest)) {
    return result += kHidden;
  }
  const auto query = std::min(rest.size(), rest.find('?'));
  result += rest.substr(0, query);
  rest.remove_prefix(query);
  while (!rest.empty()) {  // begins with the ? or & of a parameter
    const auto end = std::min(rest.size(), rest.find('&', 1));
    const std::string_view parameter = rest.substr(0, end);
    const auto equals = std::min(parameter.size(), parameter.find('='));
    const bool secret = is_secret_keyword(parameter.substr(0, equals));
    result += secret ? parameter.substr(0, equals + 1) : parameter;
    if (secret && equals < parameter.size()) hide_if_there(result, parameter.substr(equals + 1));
    rest.remove_prefix(end);
  }
  return result;
}

constexpr std::string_view kSpace = " \t\n\r\f\v";

bool is_keyword(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos;
}

void skip_space(std::string_view& text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(kSpace)));
}

// Takes one value off `text`, as it is written: quoted or up to a space; a backslash escapes.
// Nothing if a quote is not closed.
std::optional<std::string_view> take_value(std::string_view& text) {
  const bool quoted = text.starts_with('\'');
  std::size_t end = quoted ? 1 : 0;
  while (end < text.size()) {
    if (quoted ? text[end] == '\'' : kSpace.find(text[end]) != std::string_view::npos) break;
    end += text[end] == '\\' ? 2 : 1;
  }
  if (quoted && end >= text.size()) return std::nullopt;
  end = std::min(text.size(), quoted ? end + 1 : end);
  const std::string_view value = text.substr(0, end);
  text.remove_prefix(end);
  return value;
}

std::optional<std::string> redact_conninfo(std::string_view text) {
  std::string result;
  for (skip_space(text); !text.empty(); skip_space(text)) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    std::string_view name = text.substr(0, equals);
    name = name.substr(0, name.find_first_of(kSpace));
    text.remove_prefix(equals + 1);
    skip_space(text);
    const auto value = take_value(text);
    if (!is_keyword(name) || !value) return std::nullopt;
    if (!result.empty()) result += ' ';
    result.append(name).append("=");
    result += is_secret_keyword(name) && !value->empty() && *value != "''" ? kHidden : *value;
  }
  return result;
}

}  // namespace

std::string redact_url(std::string_view url) {
  for (const std::string_view scheme : {"postgresql://", "postgres://"})
    if (url.starts_with(scheme)) return redact_uri(scheme, url.substr(scheme.size()));
  return redact_conninfo(url).value_or(std::string(kHidden));
}

std::optional<std::string> url_mistake(std::string_view url) {
  for (const std::string_view scheme : {"postgresql://", "postgres://"}) {
    if (!url.starts_with(scheme)) continue;
    // libpq looks for user and password before the first @ or /.
    const std::string_view rest = url.substr(scheme.size());
    const auto end = std::min(rest.size(), rest.find_first_of("@/"));
    const std::string_view after = rest.substr(std::min(rest.size(), end + 1));
    const bool at = end < rest.size() && rest[end] == '@';
    if (after.substr(0, after.find('?')).find('@') == std::string_view::npos &&
        !has_bad_port(at ? after : rest))
      continue;
    return "cannot be read: write it as postgresql://user:password@host:port/database, and in user "
           "and password @ as %40, / as %2F, : as %3A, ? as %3F and % as %25 (the value is not "
           "shown: "
           "it may hold a password)";
  }
  return std::nullopt;
}

bool is_secret(std::string_view property) {
  constexpr std::array<std::string_view, 6> kMarks = {
      "password", "passphrase", "secret", "key.pem", "private.key", "oauthbearer.config"};
  return std::any_of(kMarks.begin(), kMarks.end(), [&](std::string_view mark) {
    return property.find(mark) != std::string_view::npos;
  });
}

std::string redacted(std::string_view property, std::string_view value) {
  return std::string(is_secret(property) ? kHidden : value);
}

}  // namespace hapax::config
