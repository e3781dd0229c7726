// How far a command has read a topic. On a terminal only: a program that reads stderr wants
// sentences.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace hapax::app {

// On a terminal only: a program that reads stderr wants sentences.
class Progress {
 public:
  explicit Progress(bool wanted) : wanted_(wanted && isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::int32_t partition, std::int64_t offset, std::int64_t end) {
    if (!wanted_) return;
    shown_ = true;
    std::fprintf(stderr, "\r\x1b[Kpartition %d: %lld of %lld", partition,
                 static_cast<long long>(offset), static_cast<long long>(end));
  }

 private:
  bool wanted_;
  bool shown_ = false;
};

}  // namespace hapax::app
