#include "flow/breaker.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

namespace hapax::flow {
namespace {

// Bytes of a cause that is made of an error's text.
constexpr std::size_t kMaxCause = 200;

// The second byte of a character in UTF-8, or a later one.
bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace

std::string cause_of(const Outcome& outcome) {
  const bool ran = outcome.reason == "rejected" || outcome.reason == "attempts_exhausted" ||
                   outcome.reason == "crashed" || outcome.reason == "outcome_unknown";
  if (outcome.result != Result::failed || !ran) return {};
  if (!outcome.sqlstate.empty()) return outcome.reason + " (SQLSTATE " + outcome.sqlstate + ")";
  std::string cause = outcome.reason + ":";
  std::size_t end = std::min(outcome.detail.size(), kMaxCause);
  while (end > 0 && end < outcome.detail.size() && is_inside_character(outcome.detail[end])) --end;
  std::istringstream words(outcome.detail.substr(0, end));
  for (std::string word; words >> word;)
    if (word.find_first_of("0123456789") == std::string::npos) cause += " " + word;
  return cause;
}

void Breaker::learn(const Outcome& outcome) {
  if (outcome.result == Result::completed && count_ > 0) {
    const sync::Lock lock(mutex_);
    count_ = 0;
  }
  if (limit_ == 0 || outcome.result != Result::failed) return;
  const std::string cause = cause_of(outcome);
  const sync::Lock lock(mutex_);
  if (cause.empty() || open_) return;
  count_ = cause == cause_ ? count_ + 1 : 1;
  cause_ = cause;
  if (count_ < limit_) return;
  count_ = 0;
  untold_ = cause_;
  has_untold_ = true;
  open_ = true;
}

std::optional<std::string> Breaker::take_cause() {
  if (!has_untold_) return std::nullopt;
  const sync::Lock lock(mutex_);
  has_untold_ = false;
  return std::exchange(untold_, std::nullopt);
}

void Breaker::close() {
  const sync::Lock lock(mutex_);
  open_ = false;
}

}  // namespace hapax::flow
