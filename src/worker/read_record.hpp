// Tells a record from another one at the same offset. If a topic was made again or lost its end, it
// may have grown past the checkpoint since. Then no offset shows that, but the record does.
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
  // Nothing if the text is not of that form.
  static std::optional<ReadRecord> parse(std::string_view text);

  bool operator==(const ReadRecord&) const = default;
};

// What a look at one offset of the log has found (record_looks.hpp).
struct RecordLook {
  ReadRecord wanted;                // the one that another group of the scope read last
  std::optional<ReadRecord> found;  // nothing: there is no record that can be read
  std::chrono::steady_clock::time_point at;

  // A missing record proves nothing, because compaction may have removed it.
  bool is_another() const { return found && found->timestamp_ms != wanted.timestamp_ms; }
};

// The records that a start at `offset` can compare, ascending. They are of its generation, and not
// below `low`, the begin of the log. Nor are they so far below the start that reading them would
// take long.
std::vector<ReadRecord> comparable(std::vector<ReadRecord> records, std::int32_t generation,
                                   std::int64_t low, std::int64_t offset);

}  // namespace hapax::worker
