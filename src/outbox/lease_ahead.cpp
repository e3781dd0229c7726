#include "outbox/lease_ahead.hpp"

#include <utility>

#include "observe/log.hpp"
#include "store/worker/lease_ahead.hpp"

namespace hapax::outbox {

void warn_of_lease_ahead(store::Session& session, const std::string& group, std::string& said) {
  const auto lease = store::read_lease_ahead(session, group);
  if (!lease || std::exchange(said, "lease ahead") == "lease ahead") return;
  observe::log::warning(
      "outbox_lease_ahead", {{"group", group}, {"holder", lease->holder}, {"until", lease->until}},
      "another relay's lease ends later than any that is asked for: PostgreSQL's clock went back. "
      "If that relay has ended, no record is sent until then; see outbox_lease_ahead in the docs");
}

}  // namespace hapax::outbox
