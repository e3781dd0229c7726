// The story of one message, by its coordinates: for `hapax explain`.
#pragma once

#include <string>

#include "cli/coordinates.hpp"
#include "cli/output.hpp"
#include "config/config.hpp"
#include "store/session.hpp"

namespace hapax::app {

struct Story {
  // As `hapax explain --json` prints it.
  Json json;
  // Of a record that a handler published; else "". The story of its message is then in
  // json["message"], or is null because of `untold`.
  std::string published_by;
  std::string untold;
  bool accounted = true;  // false: nothing explains the message
};

// Throws: Stop, store::DatabaseError. Blocks: at most kKafkaTimeout for each answer of Kafka.
// Precondition: `place` has an offset.
Story tell_message(const config::Config& config, store::Session& session, const Place& place);

}  // namespace hapax::app
