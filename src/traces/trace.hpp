// A run of a message, or of a batch, as its trace knows it.
#pragma once

#include <string>

#include "traces/context.hpp"

namespace hapax::traces {

// What the run is part of.
struct Trace {
  SpanContext context;       // of its own span
  bool is_recorded = false;  // its span is sent
  bool continues = false;    // its span is a child of the message's producer
};

// How it ended for one message.
struct Ended {
  const char* outcome;     // a fixed word
  std::string error = {};  // a fixed word or an SQLSTATE; "": it went well
};

}  // namespace hapax::traces
