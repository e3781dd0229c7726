// What the process's exit code means. Documented in `hapax --help`; scripts rely on it.
#pragma once

namespace hapax::app {

enum ExitCode : int {
  kDone = 0,
  kFailed = 1,       // it ran, and the answer is no: a check failed, something was not found
  kUsage = 2,        // the command line is wrong
  kConfigWrong = 3,  // the configuration is wrong
  kUnreachable = 4,  // Kafka or PostgreSQL cannot be reached, or the topic or schema is missing
};

}  // namespace hapax::app
