// How far PostgreSQL's log was. A server that is behind a position that was once seen, or on
// another timeline, has lost what came last: even what was committed synchronously.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/transaction.hpp"

namespace hapax::store {

struct WalPosition {
  std::uint32_t timeline = 0;
  std::uint64_t lsn = 0;

  // "1/0/16B3748": the timeline, and the position as PostgreSQL writes it.
  std::string text() const;
  // Nothing if it is no such text.
  static std::optional<WalPosition> parse(std::string_view text);

  // Whether a server that is here may lack what one at `seen` had.
  bool may_lack(const WalPosition& seen) const {
    return timeline != seen.timeline || lsn < seen.lsn;
  }

  auto operator<=>(const WalPosition&) const = default;
};

// What is on disk already, so that a crash of the same server keeps it.
// Nothing from a standby. Throws: DatabaseError.
std::optional<WalPosition> read_wal_position(Transaction& transaction);

}  // namespace hapax::store
