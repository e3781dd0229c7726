// Spans in OTLP's JSON, with the names of OpenTelemetry's conventions for messaging. Pure.
#pragma once

#include <span>
#include <string>

#include "traces/span.hpp"

namespace hapax::traces {

// Who sends.
struct Resource {
  std::string group;     // service.name, and messaging.consumer.group.name of each span
  std::string instance;  // service.instance.id
  std::string client;    // messaging.client.id; "": none
};

// The body of an ExportTraceServiceRequest.
std::string otlp_json(const Resource& resource, std::span<const Span> spans);

}  // namespace hapax::traces
