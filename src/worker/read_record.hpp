// What tells a record from another one at its offset. A topic that was made again, or lost its end,
// may have grown past the checkpoint since: then no offset shows it, but the record does.
//
// Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hapax::worker {

struct ReadRecord {
  std::int32_t generation = 1;
  std::int64_t offset = -1;
  std::optional<std::int64_t> timestamp_ms;
  std::size_t bytes = 0;        // in the memory of this process; 0: not known
  std::int64_t same_topic = 0;  // CheckpointRow::same_topic when it was read

  // Without the size: "1/41/1795548286966"; without a timestamp "1/41/".
  std::string text() const;
  // Nothing if it is no such text.
  static std::optional<ReadRecord> parse(std::string_view text);

  bool operator==(const ReadRecord&) const = default;
};

// What a look at one offset of the log has found (record_looks.hpp).
struct RecordLook {
  ReadRecord wanted;                // that another group of the scope read last
  std::optional<ReadRecord> found;  // nothing: none stands there that can be read
  std::chrono::steady_clock::time_point at;

  // Nothing stands there if compaction removed it, so that proves nothing.
  bool is_another() const { return found && found->timestamp_ms != wanted.timestamp_ms; }
};

// Those that a start at `offset` can compare, ascending: of its generation, not below `low`, where
// the log begins, and not so far below the start that it would read long.
std::vector<ReadRecord> comparable(std::vector<ReadRecord> records, std::int32_t generation,
                                   std::int64_t low, std::int64_t offset);

}  // namespace hapax::worker
