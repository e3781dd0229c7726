// A span as it waits to be sent: plain values, copied out of the messages that it is about.
//
// Neither a message's key nor its payload is in a span: spans travel further than the data may.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/context.hpp"

namespace hapax::traces {

// A link for each message, up to this number, as OpenTelemetry's SDKs have it. The span counts the
// others as dropped.
inline constexpr std::size_t kMaxLinks = 128;

// By which the name, the kind and the attributes of a span are chosen. The first three are values
// of messaging.operation.type.
enum class Operation : std::uint8_t {
  receive,
  process,
  settle,
  call,   // to the outside, for a message
  serve,  // an HTTP request
};

inline constexpr const char* kOtherMethod = "_OTHER";  // for one that HTTP does not define

// Of a request that a gate serves. Its path is not in the span: it may name a customer.
struct Http {
  const char* method = kOtherMethod;
  const char* scheme = "";
  int status = 0;  // 0: it was not answered
};

struct Link {
  SpanContext context;
  std::string tracestate = {};
  std::int32_t partition = -1;  // of the message; -1: the link is to another span of hapax
  std::int64_t offset = -1;
  const char* outcome = nullptr;  // a fixed word; null: none
};

struct Span {
  Operation operation = Operation::process;
  SpanContext context;
  std::optional<SpanId> parent = std::nullopt;
  std::string tracestate = {};
  std::chrono::sys_time<std::chrono::nanoseconds> begin{}, end{};
  std::string topic = {};                      // "": of several; of a request, its route
  std::optional<std::int32_t> partition = {};  // nothing: of several
  std::optional<std::int64_t> offset = {};     // of a single message
  bool tombstone = false;
  std::optional<std::size_t> messages = {};  // of a batch
  std::string handler = {};
  const char* outcome = nullptr;  // a fixed word; null: none
  std::string error = {};         // a fixed word or an SQLSTATE; "": it went well
  std::optional<std::int64_t> replay = {};
  std::optional<Http> http = {};
  std::vector<Link> links = {};
  std::size_t links_left_out = 0;

  // In memory, roughly, for the bound of the queue.
  std::size_t bytes() const {
    std::size_t size = sizeof(Span) + tracestate.size() + topic.size() + handler.size() +
                       error.size() + links.capacity() * sizeof(Link);
    for (const Link& link : links) size += link.tracestate.size();
    return size;
  }
};

}  // namespace hapax::traces
