// How `hapax demo` tells its story: colours and a moving bar on a terminal, plain lines in a pipe.
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace hapax::app {

// 17980 → "17,980".
std::string grouped(std::int64_t number);

// Minor units → "8,912,334.12".
std::string money(std::int64_t minor);

class DemoScreen {
 public:
  DemoScreen();

  void title(const std::string& text);
  void line(const std::string& text);    // a step, with the seconds since the start
  void detail(const std::string& text);  // below a step
  void alarm(const std::string& text);   // a step that is meant to alarm

  // On a terminal the bar moves; in a pipe one line each quarter.
  void progress(const std::string& what, std::int64_t done, std::int64_t all);

  // One fact of the proof. Returns `holds`.
  bool fact(bool holds, const std::string& claim, const std::string& numbers);
  void verdict(bool exact);

 private:
  void step(const char* colour, const std::string& text);
  void end_progress();
  std::string seconds() const;
  std::string coloured(const char* colour, const std::string& text) const;

  const bool terminal_;
  const bool colours_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  bool bar_shown_ = false;
  std::int64_t quarter_ = 0;  // the last one that a pipe was told
};

}  // namespace hapax::app
