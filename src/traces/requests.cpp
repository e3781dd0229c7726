#include "traces/requests.hpp"

#include <utility>

namespace hapax::traces {

Served Requests::begin(std::span<const Header> headers) {
  const auto client = producer_of(headers);
  Served served;
  served.trace.continues = client.has_value();
  served.trace.context = {.trace_id = client ? client->trace_id : ids_.trace(),
                          .span_id = ids_.span()};
  served.trace.is_recorded =
      client ? client->is_sampled() : tracer_->samples(served.trace.context.trace_id);
  served.trace.context.flags = client ? client->flags : served.trace.is_recorded ? 1 : 0;
  if (!client || !served.trace.is_recorded) return served;
  served.parent = client->span_id;
  served.tracestate = tracestate_of(headers);
  return served;
}

void Requests::end(Served served, End end) {
  if (!served.trace.is_recorded) return;
  const WallClock wall;
  tracer_->send({.operation = Operation::serve,
                 .context = served.trace.context,
                 .parent = served.parent,
                 .tracestate = std::move(served.tracestate),
                 .begin = wall.at(end.began),
                 .end = wall.at(end.ended),
                 .topic = std::move(end.route),
                 .outcome = end.outcome,
                 .error = std::move(end.error),
                 .http = end.http});
}

}  // namespace hapax::traces
