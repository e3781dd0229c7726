// What a route's payloads are: their format, the registry of their schemas, a JSON Schema.
#include <algorithm>

#include "config/rules.hpp"
#include "config/sections.hpp"

namespace hapax::config {
namespace {

using namespace std::chrono_literals;
using Format = Payload::Format;

std::string name_of(Format format) {
  return format == Format::json ? "json" : format == Format::avro ? "avro" : "protobuf";
}

struct RegistryUrl {
  std::optional<std::string> operator()(Reader& reader, const Value& value) const {
    const std::string allowed =
        "the address of a schema registry, such as \"https://registry:8081\", without user and "
        "password (they are members of their own)";
    auto url = reader.text(value, allowed);
    if (!url) return std::nullopt;
    const auto host = url->starts_with("https://") ? 8u : url->starts_with("http://") ? 7u : 0u;
    const bool plain = std::ranges::all_of(*url, [](char c) { return c > ' ' && c < '\x7f'; });
    if (host == 0 || host == url->size() || !plain || url->find_first_of("@?#") != url->npos) {
      reader.problem(value.path, "is not " + allowed);  // it may hold a password
      return std::nullopt;
    }
    while (url->ends_with('/')) url->pop_back();
    return url;
  }
};

struct Password {
  std::optional<std::string> operator()(Reader& reader, const Value& value) const {
    std::optional<std::string> text;
    if (value.json->is_string()) {
      text = reader.text(value, "");
      if (!text || (!text->empty() && text->size() <= Text{}.longest)) return text;
    }
    reader.problem(value.path,
                   "must be a string that is not empty, better \"@/path/to/it\" (its value is not "
                   "shown)");
    return std::nullopt;
  }
};

void read_registry(Object& section, Registry& registry) {
  section.require("url", registry.url, RegistryUrl{}, "the address of the schema registry");
  section.read("user", registry.user, Text{"the name of a user"});
  const bool has_password = section.read("password", registry.password, Password{});
  section.read("ca_file", registry.ca_file, Text{"the path of a file with certificates (PEM)"});
  section.read("unknown_timeout", registry.unknown_timeout, Duration{0ms, 24h});
  section.finish();
  Reader& reader = section.reader();
  if (const auto password = section.find("password");
      password && password->json->is_string() &&
      !literal_part(password->json->get_ref<const std::string&>()).empty())
    reader.literal_secret = true;
  if (registry.user.empty() == has_password)
    reader.problem(section.path(), "\"user\" and \"password\" belong together; add the other one");
  if (has_password && registry.url.starts_with("http://"))
    reader.problem(member_path(section.path(), "password"),
                   "would be sent unencrypted; use https:// in \"url\"");
  if (!registry.ca_file.empty() && registry.url.starts_with("http://"))
    reader.problem(member_path(section.path(), "ca_file"),
                   "is for https://; leave it out, or use https:// in \"url\"");
}

// A schema's id is no part of an operation. Bytes hold it.
void refuse_bytes(Object& route, const key::KeySpec& key) {
  using Kind = key::Source::Kind;
  if (std::ranges::find(key.sources, Kind::content_hash, &key::Source::kind) != key.sources.end())
    route.reader().problem(
        member_path(route.path(), "key"),
        "\"content_hash\" is not for a route with \"payload.format\": the bytes hold the schema's "
        "id. An operation that comes again under another id would take effect twice");
}

}  // namespace

void read_payload(Object& route, Route& into) {
  if (!route.find("payload")) return;
  Payload& payload = into.payload;
  route.section("payload", [&](Object& section) {
    const bool has_format = section.read(
        "format", payload.format,
        Choice<Format>{
            {{"json", Format::json}, {"avro", Format::avro}, {"protobuf", Format::protobuf}}});
    if (section.find("registry"))
      section.section("registry",
                      [&](Object& registry) { read_registry(registry, payload.registry); });
    section.read("schema", payload.schema, Text{"the path of a JSON Schema"});
    section.finish();
    const bool asks = payload.format == Format::avro || payload.format == Format::protobuf;
    if (asks && !section.find("registry"))
      section.reader().problem(section.path(),
                               "\"format\": \"" + name_of(payload.format) +
                                   "\" needs \"registry\": {\"url\": …}, which knows the schemas");
    // A format that does not exist is a problem already, and may be meant to ask.
    const bool is_known = !has_format || payload.format != Format::plain;
    if (!asks && is_known && section.find("registry"))
      section.reader().problem(
          member_path(section.path(), "registry"),
          "is asked for \"format\": \"avro\" or \"protobuf\" only; leave it out");
    if (section.members().empty())
      section.reader().problem(section.path(),
                               "is empty; add \"schema\" or \"format\", or leave "
                               "it out");
  });
  if (payload.format == Format::plain) return;
  into.key.format = name_of(payload.format);
  // Bytes hold the schema's id, which may change while the operation is the same.
  if (!route.find("fingerprint") && !key::is_by_position(into.key))
    into.key.fingerprint.kind = key::FingerprintRule::Kind::json;
  refuse_bytes(route, into.key);
  if (route.find("outside"))
    route.reader().problem(
        member_path(route.path(), "outside"),
        "is not for a route with \"payload.format\": if the registry lost a schema between a call "
        "and its booking, the booking could not run");
}

}  // namespace hapax::config
