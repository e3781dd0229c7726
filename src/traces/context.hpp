// W3C Trace Context: which trace a message belongs to, as its headers tell.
//
// Headers come from strangers. A malformed one is as good as none: it refuses no message, and none
// of its bytes goes on into a span. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hapax/message.hpp"

namespace hapax::traces {

inline constexpr std::string_view kTraceparent = "traceparent";
inline constexpr std::string_view kTracestate = "tracestate";

using TraceId = std::array<std::uint8_t, 16>;
using SpanId = std::array<std::uint8_t, 8>;

// The place of a span in its trace.
struct SpanContext {
  TraceId trace_id{};
  SpanId span_id{};
  std::uint8_t flags = 0;

  bool is_sampled() const { return (flags & 1U) != 0; }
  bool operator==(const SpanContext&) const = default;
};

// Nothing if the text is no traceparent: another length, upper case, an id of zeros only, the
// version ff. Of a later version the fields that version 00 has.
std::optional<SpanContext> parse_traceparent(std::string_view text);

// Of the message's producer, or of a request's client. Nothing if there is no traceparent, a
// malformed one, or two.
std::optional<SpanContext> producer_of(std::span<const Header> headers);
inline std::optional<SpanContext> producer_of(const Message& message) {
  return producer_of(message.headers());
}

// The tracestate; several headers are one list. "" if there is none, or if it is not what W3C
// allows: at most 32 members and here 512 characters.
std::string tracestate_of(std::span<const Header> headers);
inline std::string tracestate_of(const Message& message) {
  return tracestate_of(message.headers());
}

// As version 00.
std::string traceparent_text(const SpanContext& context);

// Lower-case hex.
std::string hex(const TraceId& id);
std::string hex(const SpanId& id);

}  // namespace hapax::traces
