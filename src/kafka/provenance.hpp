// Who committed an offset: written into the metadata of every offset commit of ours.
//
// MirrorMaker copies metadata, so a foreign store or cluster id is foreign, not ours.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hapax::kafka {

struct Provenance {
  std::string store_id;
  std::string cluster_id;
  std::int64_t epoch = 0;
  bool first = false;  // the partition's first run starts here: nothing of it is settled yet
  // PostgreSQL's position at least (store::WalPosition), without a space. Only of routes that call
  // to the outside: a hapax from before these would take such a commit for a foreign one.
  std::string wal = {};

  // "hapax/1 store=… cluster=… epoch=…", " wal=…" if it is known, and " first=1" if it is
  std::string text() const;

  // Nothing if the text is not ours.
  static std::optional<Provenance> parse(std::string_view text);

  bool operator==(const Provenance&) const = default;
};

}  // namespace hapax::kafka
