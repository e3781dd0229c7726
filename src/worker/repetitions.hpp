// Decides which repeated lines go to the log: each text the first time, and then once a minute.
// Thread safety: none.
#pragma once

#include <chrono>
#include <map>
#include <string>

namespace hapax::worker {

class Repetitions {
 public:
  // Whether `text` is to be logged now.
  bool is_due(const std::string& text, std::chrono::steady_clock::time_point now) {
    std::erase_if(logged_, [&](const auto& one) { return now - one.second >= kAgainAfter; });
    return logged_.emplace(text, now).second;
  }

 private:
  static constexpr std::chrono::minutes kAgainAfter{1};

  std::map<std::string, std::chrono::steady_clock::time_point> logged_;
};

}  // namespace hapax::worker
