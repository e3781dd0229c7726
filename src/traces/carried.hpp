// Which trace a handler's own calls and records belong to.
#pragma once

#include <string>

#include "traces/context.hpp"
#include "traces/trace.hpp"

namespace hapax::traces {

// What a run of this message hands on.
class Carried {
 public:
  // Both outlive it. `trace`: null if traces are off.
  explicit Carried(const Message& message, const Trace* trace = nullptr)
      : message_(message), trace_(trace) {}

  // Whether the trace context is hapax's, and replaces the message's. If hapax sends no span for
  // the run, the message's goes on. If the message has none either, "not sampled" goes on, or the
  // next consumer would decide again.
  bool is_own() const {
    return trace_ != nullptr && (trace_->is_recorded || !producer_of(message_));
  }

  // "": none.
  std::string traceparent() const {
    if (is_own()) return traceparent_text(trace_->context);
    const auto producer = producer_of(message_);  // its text may go on with any bytes
    return producer ? traceparent_text(*producer) : "";
  }
  std::string tracestate() const {
    return is_own() && !trace_->continues ? "" : tracestate_of(message_);
  }

  // Of the span that is sent, or else of the message's producer; "": there is none.
  std::string trace_id() const {
    if (trace_ != nullptr && trace_->is_recorded) return hex(trace_->context.trace_id);
    const auto producer = producer_of(message_);
    return producer ? hex(producer->trace_id) : "";
  }

  const Message& message() const { return message_; }

 private:
  const Message& message_;
  const Trace* const trace_;
};

}  // namespace hapax::traces
