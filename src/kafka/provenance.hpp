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
  // The partition's first run in a log starts here: nothing of it is settled yet. Behind the
  // decision `recreated` it is the generation that the decision gave, else 1; 0: it is no such run.
  std::int32_t first = 0;
  // PostgreSQL's position at least (store::WalPosition), without a space. Only of routes that call
  // to the outside: a hapax from before these would take such a commit for a foreign one.
  std::string wal = {};

  // "hapax/1 store=… cluster=… epoch=…", " wal=…" if it is known, and " first=1" if it is one
  std::string text() const;

  // Nothing if the text is not ours.
  static std::optional<Provenance> parse(std::string_view text);

  bool operator==(const Provenance&) const = default;
};

}  // namespace hapax::kafka
