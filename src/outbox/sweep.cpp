#include "outbox/sweep.hpp"

#include "store/fault.hpp"
#include "store/worker/outbox.hpp"

namespace hapax::outbox {

Sweep::Sweep(const RelaySetup& setup)
    : group_(setup.group), connect_(setup.connect), every_(setup.sweep) {}

std::set<std::string> Sweep::turn(
    const std::function<std::map<std::string, std::int64_t>()>& marks) {
  std::set<std::string> found;
  if (running_.valid() && running_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    try {
      found = running_.get();
    } catch (const store::DatabaseError&) {
      // The next sweep comes in a minute.
    }
  }
  const auto now = std::chrono::steady_clock::now();
  if (running_.valid() || now < next_at_) return found;
  next_at_ = now + every_;
  running_ = std::async(std::launch::async, [connect = connect_, group = group_, below = marks()] {
    store::Session session(connect());
    auto behind = store::find_behind_marks(session, group, below);
    try {
      store::fold_outbox_counts(session, group);
    } catch (const store::DatabaseError&) {
      // A record that nothing finds would wait for ever. More rows of counts only take room.
    }
    return behind;
  });
  return found;
}

}  // namespace hapax::outbox
