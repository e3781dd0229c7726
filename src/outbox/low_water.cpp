#include "outbox/low_water.hpp"

#include <utility>

namespace hapax::outbox {

std::int64_t LowWater::mark() {
  if (next_) mark_ = *std::exchange(next_, std::nullopt);
  return mark_;
}

void LowWater::read(std::int64_t upto, const std::set<std::string>& writers) {
  if (candidate_ && !candidate_->writers.empty()) {
    // If a writer has ended meanwhile, this read may lack its records. The next read sees them.
    std::erase_if(candidate_->writers,
                  [&](const std::string& writer) { return !writers.contains(writer); });
    return;
  }
  if (candidate_ && upto < candidate_->id) return;  // bounded: not all of it was read
  if (candidate_) next_ = candidate_->id;
  candidate_ = Candidate{upto, writers};
}

void LowWater::reset() { *this = LowWater(); }

}  // namespace hapax::outbox
