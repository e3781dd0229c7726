#include "outbox/pace.hpp"

#include <algorithm>

namespace hapax::outbox {

void Pace::sent(std::chrono::milliseconds time) {
  most_ = std::min(most_ * 2, limits_.most);
  if (time < timeout_ / 4) timeout_ = std::max(timeout_ / 2, limits_.shortest);
}

void Pace::smaller(std::size_t records) { most_ = std::max<std::size_t>(1, records / 2); }

bool Pace::longer() {
  if (timeout_ == limits_.longest) return false;
  timeout_ = std::min(timeout_ * 2, limits_.longest);
  return true;
}

bool Pace::shorter() {
  if (timeout_ == limits_.shortest) return false;
  timeout_ = std::max(timeout_ / 2, limits_.shortest);
  limits_.longest = timeout_;
  return true;
}

}  // namespace hapax::outbox
