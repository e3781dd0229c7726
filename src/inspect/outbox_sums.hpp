// What became of the records that a group has published, by the counts that PostgreSQL keeps: for
// `hapax audit`.
#pragma once

#include <cstdint>
#include <string>

#include "cli/output.hpp"
#include "store/session.hpp"

namespace hapax::app {

struct OutboxSums {
  Json topics = Json::array();    // as store::read_outbox_counts() has them, each with "missing"
  Json removals = Json::array();  // the newest, as store::read_outbox_removals() has them
  // Whether each published record was sent, skipped or left to the original, or waits.
  bool fit = true;

  std::int64_t sent(const std::string& topic) const;
};

// Throws: store::DatabaseError. Blocks: as long as counting all unsent records takes.
OutboxSums read_outbox_sums(store::Session& session, const std::string& group);

Json json_of(const OutboxSums& sums);
// Nothing if the group has published nothing.
void print_outbox_sums(const OutboxSums& sums, const std::string& group);

}  // namespace hapax::app
