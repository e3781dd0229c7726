// The outbox as the relay sees it: the records that wait, the halts.
//
// Thread safety: none; each call uses the caller's session.
// Throws: DatabaseError (Phase::account), from all of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/session.hpp"
#include "store/transaction.hpp"
#include "store/worker/outbox_batches.hpp"
#include "store/worker/outbox_lease.hpp"

namespace hapax::store {

// False on a schema older than kOutboxSchema.
bool has_outbox(Session& session);

// A record as its row has it.
struct OutboxRow {
  std::int64_t id = 0;
  std::string topic;
  std::optional<std::string> key, payload;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  std::string idempotency_key;
  std::string source_topic, source_generation, source_partition, source_offset;
  std::size_t bytes = 0;        // of key, payload, and headers as PostgreSQL keeps them
  std::string unreadable = {};  // why; such a row was edited by hand, and has no headers here
};

// One step of the relay with the outbox.
struct OutboxStep {
  std::map<std::string, std::int64_t> topics;  // to read: topic → the id behind which to read
  std::vector<std::pair<std::string, std::int64_t>> acknowledged;  // topic and id; to be removed
  std::size_t most_rows = 0;                                       // of a topic
  std::size_t most_bytes = 0;  // OutboxRow::bytes of a topic; one record comes in any case
  std::chrono::seconds lease{0};
  LeaseClock::time_point renewed_at = {};  // the lease, last
  std::vector<std::int64_t> in_hand = {};  // ids that are not read again
  std::vector<SettledBatch> settled = {};
  std::vector<NextBatch> next = {};  // to be sent after this step; of a topic one at most
};

struct OutboxRead {
  std::vector<OutboxRow> rows;                 // in the order of ids
  std::map<std::string, std::int64_t> newest;  // the newest id of each topic, seen before `rows`
  std::set<std::string> writers;      // transactions with ids, still running after `rows` were read
  std::set<std::int64_t> halts;       // those that are open
  std::vector<std::int64_t> numbers;  // of OutboxStep::next
  LeaseClock::time_point renewed_at;  // the lease runs from then at the earliest
};

// Whether there is a record to read, beside those in hand. Writes nothing.
bool peek_outbox(Session& session, const std::string& group,
                 const std::map<std::string, std::int64_t>& topics,
                 const std::vector<std::int64_t>& in_hand = {});

// The topics with a record to send that the marks have passed.
std::set<std::string> find_behind_marks(Session& session, const std::string& group,
                                        const std::map<std::string, std::int64_t>& marks);

// Makes few rows of the counts of what the group published. Nothing on a schema without counts.
void fold_outbox_counts(Session& session, const std::string& group);

// Removes what is acknowledged or settled, opens batches and reads on, in one transaction whose
// COMMIT is synchronous. It checks the lease first and, if that is due, renews it as its last
// statement. So what it returns cannot be lost any more by a crash or a synchronous failover. No
// other relay had taken over by then, and the lease is fresh, however long the read took. Nothing
// if the lease or the incarnation is another one: then nothing was changed, and the ids in hand
// mean nothing any more.
std::optional<OutboxRead> step_outbox(Session& session, const OutboxLease& lease,
                                      const OutboxStep& step);

// The topics that have rows and are not among those.
std::set<std::string> new_outbox_topics(Session& session, const std::string& group,
                                        const std::set<std::string>& known);

struct OutboxHalt {
  std::string topic;
  std::optional<std::int64_t> row;  // nothing: the whole topic
  std::string reason, detail;
  std::string batch = {};  // the token of one that is closed with it, or ""
};

// False if the lease or the incarnation is another one: nothing was changed.
bool halt_outbox(Session& session, const OutboxLease& lease, const OutboxHalt& halt,
                 const std::string& relay);

struct OutboxMeasure {
  std::size_t unsent = 0;  // counted up to kMostMeasured
  double oldest_seconds = 0;
};
inline constexpr std::size_t kMostMeasured = 100'000;
// `topics`: which, and the id behind which each is looked at.
// Throws: DatabaseError, 57014 if it takes longer than a second.
OutboxMeasure measure_outbox(Session& session, const std::string& group,
                             const std::map<std::string, std::int64_t>& topics);

}  // namespace hapax::store
