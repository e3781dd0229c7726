// `hapax check`: the collector of spans.
#include "app/findings.hpp"

namespace hapax::app {

void check_traces(const config::Config& config, Findings& findings) {
  if (!config.traces.endpoint) return;
  const auto answer = observe::HttpPost(*config.traces.endpoint)
                          .post(R"({"resourceSpans":[]})", "application/json");
  if (answer.is_good())
    findings.ok("traces", config.traces.endpoint->url() + " takes spans");
  else
    findings.warn(
        "traces", answer.error,
        "fix traces.endpoint, or start the collector's OTLP receiver for HTTP (port 4318; "
        "4317 is gRPC). Without it a worker's spans are lost");
}

}  // namespace hapax::app
