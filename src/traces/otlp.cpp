#include "traces/otlp.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace hapax::traces {
namespace {

// An operation's name, messaging.operation.type and SpanKind.
struct Names {
  const char* name;
  const char* type;
  int kind;
};
constexpr int kServer = 2, kClient = 3, kConsumer = 5;
constexpr int kError = 2;  // of a status

Names names_of(Operation operation) {
  switch (operation) {
    case Operation::receive: return {"poll", "receive", kClient};
    case Operation::process: return {"process", "process", kConsumer};
    case Operation::call: return {"call", "", kClient};
    case Operation::serve: return {"", "", kServer};
    case Operation::settle: break;
  }
  return {"commit", "settle", kClient};
}

// Most texts are plain. For these the library's quoting would be the larger part of a span's cost.
void append_quoted(std::string& json, std::string_view text) {
  const bool plain = std::ranges::all_of(
      text, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (plain)
    json.append(1, '"').append(text).append(1, '"');
  else
    json += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Writes an array of attributes, one member for each call.
class Attributes {
 public:
  explicit Attributes(std::string& json) : json_(json) { json_ += "\"attributes\":["; }
  ~Attributes() { json_ += ']'; }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  void text(const char* key, std::string_view value) {
    if (value.empty()) return;
    begin(key, "stringValue");
    append_quoted(json_, value);
    json_ += "}}";
  }
  void number(const char* key, std::int64_t value) {  // 64 bits are a string in OTLP
    begin(key, "intValue");
    json_.append(1, '"').append(std::to_string(value)).append("\"}}");
  }
  void truth(const char* key) {
    begin(key, "boolValue");
    json_ += "true}}";
  }

 private:
  void begin(const char* key, const char* type) {
    if (!first_) json_ += ',';
    first_ = false;
    json_.append("{\"key\":\"").append(key).append("\",\"value\":{\"").append(type).append("\":");
  }

  std::string& json_;
  bool first_ = true;
};

void append_context(std::string& json, const SpanContext& context, std::string_view tracestate) {
  json.append("\"traceId\":\"").append(hex(context.trace_id));
  json.append("\",\"spanId\":\"").append(hex(context.span_id));
  json.append("\",\"flags\":").append(std::to_string(context.flags));
  if (!tracestate.empty()) {
    json += ",\"traceState\":";
    append_quoted(json, tracestate);
  }
  json += ',';
}

void append_link(std::string& json, const Link& link) {
  json += '{';
  append_context(json, link.context, link.tracestate);
  {
    Attributes attributes(json);
    if (link.partition >= 0) {
      attributes.text("messaging.destination.partition.id", std::to_string(link.partition));
      attributes.number("messaging.kafka.offset", link.offset);
    }
    if (link.outcome != nullptr) attributes.text("hapax.outcome", link.outcome);
  }
  json += '}';
}

void add_request(Attributes& attributes, const Http& http, const Span& span) {
  attributes.text("http.request.method", http.method);
  attributes.text("http.route", span.topic);
  attributes.text("url.scheme", http.scheme);
  if (http.status != 0) attributes.number("http.response.status_code", http.status);
}

// Describes the client of Kafka. A call to the outside does not go to Kafka, so its span has none
// of this.
void add_client(Attributes& attributes, const Resource& resource, const Names& names) {
  attributes.text("messaging.system", "kafka");
  attributes.text("messaging.operation.name", names.name);
  attributes.text("messaging.operation.type", names.type);
  attributes.text("messaging.consumer.group.name", resource.group);
  attributes.text("messaging.client.id", resource.client);
}

void add_messages(Attributes& attributes, const Span& span) {
  attributes.text("messaging.destination.name", span.topic);
  if (span.partition)
    attributes.text("messaging.destination.partition.id", std::to_string(*span.partition));
  if (span.offset) attributes.number("messaging.kafka.offset", *span.offset);
  if (span.tombstone) attributes.truth("messaging.kafka.message.tombstone");
  if (span.messages)
    attributes.number("messaging.batch.message_count", static_cast<std::int64_t>(*span.messages));
}

void append_attributes(std::string& json, const Resource& resource, const Span& span) {
  Attributes attributes(json);
  if (span.http) {
    add_request(attributes, *span.http, span);
  } else {
    if (span.operation != Operation::call)
      add_client(attributes, resource, names_of(span.operation));
    add_messages(attributes, span);
  }
  attributes.text("error.type", span.error);
  attributes.text("hapax.handler", span.handler);
  if (span.outcome != nullptr) attributes.text("hapax.outcome", span.outcome);
  if (span.replay) attributes.number("hapax.replay", *span.replay);
}

// The name by OpenTelemetry's conventions: `process payments`, `POST /accounts/{account}/payments`.
std::string name_of(const Span& span) {
  const std::string_view first = span.http ? span.http->method : names_of(span.operation).name;
  std::string name(first == kOtherMethod ? "HTTP" : first);
  if (!span.topic.empty()) name.append(1, ' ').append(span.topic);
  return name;
}

void append_span(std::string& json, const Resource& resource, const Span& span) {
  json += '{';
  append_context(json, span.context, span.tracestate);
  if (span.parent) json.append("\"parentSpanId\":\"").append(hex(*span.parent)).append("\",");
  json += "\"name\":";
  append_quoted(json, name_of(span));
  json.append(",\"kind\":").append(std::to_string(names_of(span.operation).kind));
  json.append(",\"startTimeUnixNano\":\"")
      .append(std::to_string(span.begin.time_since_epoch().count()));
  json.append("\",\"endTimeUnixNano\":\"")
      .append(std::to_string(span.end.time_since_epoch().count()))
      .append("\",");
  append_attributes(json, resource, span);
  if (!span.links.empty()) {
    json += ",\"links\":[";
    for (const Link& link : span.links) {
      if (&link != &span.links.front()) json += ',';
      append_link(json, link);
    }
    json += ']';
  }
  if (span.links_left_out > 0)
    json.append(",\"droppedLinksCount\":").append(std::to_string(span.links_left_out));
  if (!span.error.empty())
    json.append(",\"status\":{\"code\":").append(std::to_string(kError)).append("}");
  json += '}';
}

}  // namespace

std::string otlp_json(const Resource& resource, std::span<const Span> spans) {
  std::string json = R"({"resourceSpans":[{"resource":{)";
  {
    Attributes attributes(json);
    attributes.text("service.name", resource.group);
    attributes.text("service.version", HAPAX_VERSION);
    attributes.text("service.instance.id", resource.instance);
  }
  json += R"(},"scopeSpans":[{"scope":{"name":"hapax","version":")" HAPAX_VERSION R"("},"spans":[)";
  for (const Span& span : spans) {
    if (&span != spans.data()) json += ',';
    append_span(json, resource, span);
  }
  json += "]}]}]}";
  return json;
}

}  // namespace hapax::traces
