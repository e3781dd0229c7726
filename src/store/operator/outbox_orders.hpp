// What operators decide about records that the relay has stopped: try them again, or never send
// them. Kept in hapax.operator_log, in the same transaction.
//
// Throws: Refused, DatabaseError. Blocks: at most lock_timeout.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/operator/inspect.hpp"
#include "store/operator/operator.hpp"
#include "store/session.hpp"

namespace hapax::store {

// A halt as an operator was shown it. The relay may amend an open one: the same id, and another
// reason.
struct SeenHalt {
  std::int64_t id;
  std::string reason;
};

struct OutboxOrder {
  std::string group;
  std::string who;
  std::string why;
  bool dry_run = false;  // do it all, then roll back
  // If it is set, and the order would end other halts than these: refused.
  std::optional<std::vector<SeenHalt>> seen = {};
};

struct OutboxDecided {
  Json halts = Json::array();    // those that were ended, as read_outbox_halts()
  Json records = Json::array();  // those that were removed, as read_outbox_record()
  std::string cluster = {};      // that was forgotten
};

// Ends the open halts of `which`, so that the relay sends again: a topic with all its records, or a
// record's id. Nothing in the answer: there is no such halt.
// `new_cluster`: and the group's records may go to another Kafka cluster from now on.
OutboxDecided retry_outbox(Session& session, const OutboxOrder& order, const std::string& which,
                           bool new_cluster = false);

// Removes records, so that they are never sent, and ends their halts. All or none. The log keeps
// each record whole. Refuses a record that is not halted, itself or with its key or topic: the
// relay may be sending it at this moment.
OutboxDecided skip_outbox(Session& session, const OutboxOrder& order,
                          const std::vector<std::int64_t>& ids);

}  // namespace hapax::store
