// The log's line of a halt.
#pragma once

#include <string>

#include "observe/log.hpp"
#include "worker/notices.hpp"

namespace hapax::worker {

inline void log_halt(const HaltWanted& wanted) {
  namespace log = observe::log;
  const store::Halt& halt = wanted.halt;
  const std::string sentence =
      wanted.recorded ? "stopped on purpose since " + halt.since + "; `hapax status` shows why"
                      : "stopped on purpose; `hapax status` shows why, `hapax resume` ends it";
  const log::Field topic("topic", halt.topic), reason("reason", halt.reason),
      partition("partition", wanted.partition->id().second),
      whole_route("whole_route", halt.whole_route);
  if (halt.offset)
    log::error("halted", {topic, partition, {"offset", *halt.offset}, whole_route, reason},
               sentence);
  else
    log::error("halted", {topic, partition, whole_route, reason}, sentence);
}

}  // namespace hapax::worker
