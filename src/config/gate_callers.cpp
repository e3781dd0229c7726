#include "config/gate_callers.hpp"

#include <algorithm>
#include <utility>

#include "config/rules.hpp"

namespace hapax::config {

bool is_lower_token(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

bool is_printable(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7F; });
}

namespace {

constexpr const char* kLineIs =
    "each line is a tenant, a blank, and the SHA-256 of a token in 64 hex digits in lower case";

std::optional<std::string> digest_of_hex(std::string_view hex) {
  if (hex.size() != 64) return std::nullopt;
  std::string digest;
  unsigned byte = 0;
  for (std::size_t i = 0; i < hex.size(); ++i) {
    const char c = hex[i];
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) return std::nullopt;
    byte = byte * 16 + static_cast<unsigned>(digit ? c - '0' : c - 'a' + 10);
    if (i % 2 == 1) digest += static_cast<char>(std::exchange(byte, 0));
  }
  return digest;
}

std::optional<std::vector<GateToken>> tokens(Reader& reader, const Value& value) {
  const auto text = reader.text(value, "\"@/path/to/tokens\": " + std::string(kLineIs));
  if (!text) return std::nullopt;
  auto read = tokens_of(*text);
  if (auto* found = std::get_if<std::vector<GateToken>>(&read)) return std::move(*found);
  reader.problem(value.path, std::get<std::string>(read));
  return std::nullopt;
}
std::optional<std::vector<Network>> networks(Reader& reader, const Value& value) {
  const std::string allowed = "addresses or networks, such as \"10.0.0.7\" or \"fd00::/8\"";
  std::vector<Network> read;
  for (const Value& element : reader.elements(value, "an array of " + allowed)) {
    const auto text = reader.text(element, allowed);
    const auto network = text ? parse_network(*text) : std::nullopt;
    if (network) read.push_back(*network);
    if (text && !network) reader.refuse(element, allowed);
  }
  return read;
}

}  // namespace

std::variant<std::vector<GateToken>, std::string> tokens_of(std::string_view text) {
  std::vector<GateToken> read;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line(text.substr(begin, end - begin));
    begin = end + 1;
    const std::string which = "line " + std::to_string(++number);
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t blank = line.find(' ');
    const std::string tenant = line.substr(0, blank);
    const auto digest =
        blank == std::string::npos ? std::nullopt : digest_of_hex(line.substr(blank + 1));
    if (!digest || tenant.empty() || tenant.size() > kMaxTenant || !is_printable(tenant))
      return which + " is wrong; " + kLineIs;
    if (std::ranges::any_of(read, [&](const GateToken& other) {
          return other.digest == *digest && other.tenant != tenant;
        }))
      return which + " has the token of another tenant; each has its own";
    read.push_back({tenant, *digest});
  }
  if (read.empty()) return std::string("holds no token; ") + kLineIs;
  return read;
}

void read_callers(Object& section, GateCallers& callers, bool certificates) {
  section.read("tokens", callers.tokens, tokens);
  if (const auto value = section.find("tokens"))
    callers.tokens_file = section.reader().file_named_by(*value);
  if (section.find("proxy"))
    section.section("proxy", [&](Object& proxy) {
      proxy.require("addresses", callers.proxies, networks,
                    "the addresses or networks of proxies that name the tenant");
      proxy.require("header", callers.header, Text{"the name of a header, in lower case", 100},
                    "the header in which they name it");
      proxy.finish();
      if (!callers.header.empty() && !is_lower_token(callers.header))
        proxy.reader().problem(member_path(proxy.path(), "header"), "is not in lower case");
    });
  section.finish();
  if (!section.find("tokens") && !section.find("proxy") && !certificates)
    section.reader().problem(
        section.path(),
        "is missing: who may call. Add \"tokens\": \"@/path/to/tokens\", or \"proxy\" with the "
        "addresses of one that names the tenant in a header, or gate.tls.client_ca; see "
        "docs/gate.md");
}

void read_tls(Object& section, GateTls& tls) {
  const Text path{"the path of a file in PEM", 4096};
  section.require("certificate", tls.certificate, path,
                  "the file of the gate's certificate in PEM, with those between it and its root");
  section.require("key", tls.key, path, "the file of the certificate's private key in PEM");
  section.read("client_ca", tls.client_ca, path);
  section.finish();
}

}  // namespace hapax::config
