// Knows the id behind which the relay reads a topic. Without it, PostgreSQL would walk the index
// entries of all removed records, until vacuum removes them.
//
// Ids become visible out of order: a transaction that has drawn id 5 may commit after id 6 was
// sent. So the mark passes an id only if all transactions that had drawn ids by then have ended. A
// later read has then seen their records. A transaction that has drawn an id holds the table's
// lock, so the relay knows them by that lock. (The oldest running transaction would do, too, but it
// also waits for other databases and for handlers that have not published anything.)
//
// Pure. Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace hapax::outbox {

class LowWater {
 public:
  // The relay reads behind this id. Precondition: the records of earlier reads are in hand or
  // removed, or the transaction of this read removes them.
  std::int64_t mark();

  // The last result of mark().
  std::int64_t last_mark() const { return mark_; }

  // After a read behind mark(): it returned all that was visible up to `upto`. `writers`: the
  // transactions that had drawn ids and had not ended after that read.
  void read(std::int64_t upto, const std::set<std::string>& writers);

  // Begins at the first id again, so the next read sees all.
  void reset();

 private:
  struct Candidate {
    std::int64_t id = 0;
    std::set<std::string> writers;  // that are still to end
  };
  std::int64_t mark_ = 0;
  std::optional<std::int64_t> next_;
  std::optional<Candidate> candidate_;
};

}  // namespace hapax::outbox
