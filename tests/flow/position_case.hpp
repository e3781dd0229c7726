// The base of the tests of routes with `key: "position"`: who takes a partition, and what is
// settled.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "flow/flow_case.hpp"
#include "store/worker/checkpoints.hpp"
#include "support/cutting_proxy.hpp"

namespace hapax::flow {

class PositionCase : public FlowCase {
 protected:
  PositionCase() { route.key.sources = {{key::Source::Kind::position, {}}}; }

  store::Taking taking(const std::string& owner) const {
    return {"group", {route.topic, kPartition}, owner, "spec", "booking", 0, true};
  }

  // As a worker does that starts: raises the epoch, and learns whether a transaction is open.
  store::Taken take(const std::string& owner) {
    store::Session session(database.worker());
    store::Taking next = taking(owner);
    const auto row = store::read_checkpoint(session, "group", next.partition);
    next.read_epoch = row ? row->epoch : 0;
    return store::take_partition(session, next).value();
  }

  std::set<std::int64_t> settled_from(std::int64_t start, std::int32_t generation = 1) {
    store::Session session(database.worker());
    const store::TopicPartition partition{route.topic, kPartition};
    return store::read_known_messages(session, "group",
                                      {{partition, generation, start, true}})[partition]
        .settled;
  }

  std::string rows() {
    return database.value(
        "SELECT string_agg(last || coalesce(earlier::text, ''), ' ' ORDER BY partition, last) FROM "
        "hapax.positions");
  }

  static constexpr std::int32_t kPartition = 3;  // FlowCase's
};

}  // namespace hapax::flow
