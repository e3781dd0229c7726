// A process that is named by a descriptor (pidfd): its number may go to another, this may not.
//
// By syscall(): the declarations of glibc 2.36 (Debian 12) do not link from C++.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "sandbox/descriptor.hpp"

namespace hapax::sandbox {

class WatchedProcess {
 public:
  WatchedProcess() = default;
  // Any process, not only a child. Throws: std::system_error (ESRCH if there is none).
  explicit WatchedProcess(pid_t pid);

  // Whether it has ended; a zombie has. Blocks: at most `timeout`.
  bool wait_for_end(std::chrono::milliseconds timeout) const;

  // Nothing happens if it has ended.
  void signal(int number) const;

  // Readable once it has ended.
  int descriptor() const { return descriptor_.get(); }

 private:
  Descriptor descriptor_;
};

}  // namespace hapax::sandbox
