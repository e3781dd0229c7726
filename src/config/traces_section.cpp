// The section "traces".
#include <charconv>
#include <cmath>

#include "config/rules.hpp"
#include "config/sections.hpp"

namespace hapax::config {
namespace {

constexpr const char* kDefaultPath = "/v1/traces";

bool is_in_url(char c) { return c > ' ' && c <= '~' && c != '"' && c != '<' && c != '>'; }

// Without user, query and fragment: a collector needs none of them.
std::optional<observe::HttpTarget> parse_url(std::string_view text) {
  observe::HttpTarget target;
  target.tls = text.starts_with("https://");
  if (!target.tls && !text.starts_with("http://")) return std::nullopt;
  text.remove_prefix(target.tls ? 8 : 7);
  for (const char c : text)
    if (!is_in_url(c) || c == '@' || c == '?' || c == '#') return std::nullopt;
  const auto slash = std::min(text.find('/'), text.size());
  target.path = text.substr(slash).size() < 2 ? kDefaultPath : text.substr(slash);
  std::string_view host = text.substr(0, slash);
  target.port = target.tls ? 443 : 80;
  const auto bracket = host.starts_with('[') ? host.find(']') : 0;
  if (bracket == std::string_view::npos) return std::nullopt;
  if (const auto colon = host.find(':', bracket); colon != std::string_view::npos) {
    const std::string_view port = host.substr(colon + 1);
    const auto [rest, error] = std::from_chars(port.data(), port.data() + port.size(), target.port);
    if (error != std::errc{} || rest != port.data() + port.size() || target.port == 0)
      return std::nullopt;
    host = host.substr(0, colon);
  }
  if (bracket > 0 && host.size() != bracket + 1) return std::nullopt;
  target.host = bracket > 0 ? host.substr(1, bracket - 1) : host;
  return target.host.empty() ? std::nullopt : std::optional(target);
}

struct Endpoint {
  std::optional<std::optional<observe::HttpTarget>> operator()(Reader& reader,
                                                               const Value& value) const {
    const std::string allowed =
        "the URL of an OpenTelemetry collector that takes OTLP over HTTP, such as "
        "\"http://collector:4318\" (/v1/traces if it has no path), without user, ? and #; or \"\": "
        "off";
    const auto text = reader.text(value, allowed);
    if (!text) return std::nullopt;
    if (text->empty()) return std::optional<observe::HttpTarget>();
    if (const auto target = parse_url(*text)) return target;
    if (text->find('@') == std::string::npos)
      reader.refuse(value, allowed);
    else
      reader.problem(value.path,
                     "names a user (its value is not shown: it may hold a password), which hapax "
                     "does not send; allowed: " +
                         allowed);
    return std::nullopt;
  }
};

// A share of all.
struct Share {
  std::optional<double> operator()(Reader& reader, const Value& value) const {
    const std::string allowed = "a number from 0 to 1";
    std::optional<double> number;
    if (value.json->is_number()) number = value.json->get<double>();
    if (value.json->is_string()) {
      const auto text = reader.text(value, allowed);
      if (!text) return std::nullopt;
      double parsed = 0;
      const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), parsed);
      const bool is_outside = *text != value.json->get_ref<const std::string&>();
      if (is_outside && error == std::errc{} && end == text->data() + text->size()) number = parsed;
    }
    if (number && *number >= 0 && *number <= 1) return number;
    reader.refuse(value, allowed);
    return std::nullopt;
  }
};

}  // namespace

void read_traces(Object& section, Traces& traces) {
  section.read(
      "parent", traces.parent,
      Choice<SpanParent>{{{"link", SpanParent::link}, {"producer", SpanParent::producer}}});
  read_gate_traces(section, traces);
}

void read_gate_traces(Object& section, Traces& traces) {
  section.read("endpoint", traces.endpoint, Endpoint{});
  section.read("ratio", traces.ratio, Share{});
  section.finish();
}

}  // namespace hapax::config
