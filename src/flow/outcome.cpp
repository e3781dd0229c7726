#include "flow/outcome.hpp"

namespace hapax::flow {

const char* name_of(Result result) {
  switch (result) {
    case Result::completed: return "completed";
    case Result::duplicate: return "duplicate";
    case Result::failed: return "failed";
    case Result::skipped: return "skipped";
    case Result::retry: return "retry";
    case Result::again: return "again";
    case Result::busy: return "busy";
    case Result::outage: return "outage";
    case Result::waits: return "waits";
    case Result::halt_partition: return "halt_partition";
    case Result::halt_route: return "halt_route";
  }
  return "unknown";
}

traces::Ended ended_as(const Outcome& outcome) {
  const std::string& cause = outcome.sqlstate.empty() ? outcome.reason : outcome.sqlstate;
  switch (outcome.result) {
    case Result::failed:
    case Result::halt_partition:
    case Result::halt_route: return {name_of(outcome.result), outcome.reason};
    case Result::retry:
    case Result::again:
    case Result::outage: return {name_of(outcome.result), cause.empty() ? "failed" : cause};
    default: return {name_of(outcome.result)};
  }
}

}  // namespace hapax::flow
