// Decides which number ("generation") a partition's log has. A key made of coordinates holds it. So
// all groups of a scope must give one log the same number, and two logs different ones.
//
// A log is known by its cluster and the topic's id. If the client cannot tell the id, it is known
// by what operators decided, and by the records that other groups read last. A number is kept for
// good, because keys and dead letters are found by it.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "store/worker/checkpoints.hpp"
#include "store/worker/logs.hpp"
#include "worker/read_record.hpp"

namespace hapax::worker {

struct LogFacts {
  std::string scope;
  std::string cluster_id;
  std::string topic_id;  // empty: this librdkafka cannot tell
  std::optional<store::CheckpointRow> row;
  std::vector<store::KnownLog> known;  // of this partition, in all scopes
  std::int64_t log_end = 0;            // asked for after `known`
  std::int64_t log_begin = 0;
  std::optional<RecordLook> look;  // if there was one
};

struct LogNumber {
  std::int32_t generation = 1;
  bool learns = false;  // the number must be written for other groups
  // An operator decided that the checkpoint stays and its log gets another number.
  bool renamed = false;
  bool operator==(const LogNumber&) const = default;
};

// A sentence that tells how the group's number contradicts the other groups' facts.
struct LogDisputed {
  std::string why;
  std::int32_t generation = 1;  // of the log that this one is not
  bool is_of_short_log = false;
};

// The log would get a number only by its name. First the worker must look whether the log holds
// this record, which another group read last under that number.
struct LogUnproven {
  ReadRecord last;
};

using NumberedLog = std::variant<LogNumber, LogDisputed, LogUnproven>;

// Only for keys that may be made of coordinates.
NumberedLog number_of_log(const LogFacts& facts);

}  // namespace hapax::worker
