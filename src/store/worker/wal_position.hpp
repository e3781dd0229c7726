// How far PostgreSQL's log was. A server that is behind a position that was once seen, or on
// another timeline, has lost what came last: even what was committed synchronously. Positions of
// two databases cannot be compared: the second may be a copy from before the position.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "store/transaction.hpp"

namespace hapax::store {

struct WalPosition {
  std::uint32_t timeline = 0;
  std::uint64_t lsn = 0;
  std::string database = {};  // system identifier and oid; empty in a text of a hapax from before

  // "7395012345678901234.16384/1/0/16B3748": the database, the timeline, and the position as
  // PostgreSQL writes it.
  std::string text() const;
  // Nothing if it is no such text.
  static std::optional<WalPosition> parse(std::string_view text);

  // On the same timeline, at an earlier place: "0/16B3748". A later one counts as this.
  WalPosition at(std::string_view place) const;

  // Whether a server that is here may lack what one at `seen` had.
  bool may_lack(const WalPosition& seen) const {
    const bool is_another =
        !database.empty() && !seen.database.empty() && database != seen.database;
    return is_another || timeline != seen.timeline || lsn < seen.lsn;
  }

  // Of the same database, as far as can be told.
  bool is_older_than(const WalPosition& other) const {
    return database == other.database &&
           std::tie(timeline, lsn) < std::tie(other.timeline, other.lsn);
  }

  // What any server may lack.
  static WalPosition lost() { return {}; }

  bool operator==(const WalPosition&) const = default;
};

// What is on disk already, so that a crash of the same server keeps it.
// Nothing from a standby. Throws: DatabaseError.
std::optional<WalPosition> read_wal_position(Transaction& transaction);
// The same, behind the session's last transaction.
std::optional<WalPosition> read_wal_position(Session& session);

}  // namespace hapax::store
