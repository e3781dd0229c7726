// Decides which requests of a gate become spans, and what these spans hold.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "traces/tracer.hpp"

namespace hapax::traces {

// A request, from its header to its answer.
struct Served {
  Trace trace;
  std::optional<SpanId> parent = {};  // the client's
  std::string tracestate = {};
};

// Unlike a message, a request is a child of the span that its traceparent names, because the client
// waits for the answer.
//
// Thread safety: none.
class Requests {
 public:
  // `tracer`: null if traces are off; outlives it.
  explicit Requests(Tracer* tracer) : tracer_(tracer) {}

  bool is_on() const { return tracer_ != nullptr; }

  // Precondition: is_on(). `headers`: with names in lower case.
  Served begin(std::span<const Header> headers);

  struct End {
    std::string route;  // "": none fits
    Http http;
    const char* outcome;     // a fixed word
    std::string error = {};  // "": it succeeded, or the client made a mistake
    Time began, ended;
  };
  // Precondition: is_on().
  void end(Served served, End end);

 private:
  Tracer* const tracer_;
  Ids ids_;
};

}  // namespace hapax::traces
