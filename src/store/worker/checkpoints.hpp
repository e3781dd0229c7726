// The checkpoint row of a partition: its next offset, its owner, and whether PostgreSQL has lost
// commits.
//
// Each function is one short transaction of its own on the caller's session.
// Throws: DatabaseError (Phase::account).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/session.hpp"
#include "store/worker/logs.hpp"
#include "store/worker/positions.hpp"
#include "store/worker/wal_position.hpp"

namespace hapax::store {

// Topic and partition, ordered as SQL takes locks.
// Which database this is. `copied`: the database is a logical copy, because it is not the one that
// the row names.
struct StoreIdentity {
  std::string id;
  std::string incarnation;
  // A part of the incarnation. A restart keeps it, and crash recovery or a promotion removes it.
  std::string unlogged_id;
  bool copied = false;
  std::string facts;                    // for people: what the row holds and what PostgreSQL shows
  std::optional<WalPosition> position;  // if it was asked for, and PostgreSQL tells
  // Then also that of its last checkpoint. If it has written none since this run of the server
  // began, the run began here.
  std::optional<WalPosition> began;
};

struct CheckpointRow {
  std::int64_t epoch = 0;
  std::optional<std::int64_t> next_offset;
  std::optional<std::int64_t> highest;
  std::optional<std::int64_t> highest_settled;
  std::int32_t generation = 1;
  std::optional<std::string> owner;
  std::string key_spec;
  std::string scope;
  std::optional<std::string> topic_id;
  std::optional<std::string> cluster_id;
  int started_runs = 0;
  std::optional<std::string> start_as;     // an operator's decision for this start
  std::optional<std::string> last_record;  // below next_offset (worker::ReadRecord)
  // the last halt that an operator ended as `same_topic`; 0: none
  std::int64_t same_topic = 0;
  bool is_of_earlier_run = false;  // was last written before this run of the server began

  // Whether a start under this key spec may go on here: nothing was settled under another spec, or
  // an operator has accepted the change. (If key_spec is empty, the start begins a log.)
  bool accepts(const std::string& spec) const {
    return key_spec.empty() || key_spec == "accepted" || key_spec == spec;
  }
};

struct Halt {
  std::int64_t id = 0;
  std::string topic;
  std::int32_t partition = 0;
  bool whole_route = false;
  std::int32_t generation = 1;
  std::optional<std::int64_t> offset;
  std::string reason;  // a fixed word
  std::string detail;  // for people, with the facts
  std::string since;
  std::string halted_by;
  std::int64_t epoch = 0;  // of the partition, when it is recorded; 0: its start was not agreed

  bool stops(const TopicPartition& which) const {
    return topic == which.first && (whole_route || partition == which.second);
  }
};

// Writes the incarnation row if it is missing, and reads which database this is. The position is
// the one within this incarnation.
StoreIdentity read_store(Session& session, bool with_position = false);

// Returns the rows that exist.
std::map<TopicPartition, CheckpointRow> read_checkpoints(
    Session& session, const std::string& group, const std::vector<TopicPartition>& partitions);
std::optional<CheckpointRow> read_checkpoint(Session& session, const std::string& group,
                                             const TopicPartition& partition);

struct Taking {
  std::string group;
  TopicPartition partition;
  std::string owner;
  std::string key_spec;
  std::string scope;
  std::int64_t read_epoch = 0;  // 0: there was no row
  bool by_position = false;     // PostgreSQL remembers its offsets, and no keys
};

struct Taken {
  std::int64_t epoch = 0;
  int started_runs = 0;  // this one included, since the checkpoint last moved or an owner left
  std::int32_t generation = 1;  // of the row; a new row has a number that the group never had
  std::optional<std::int64_t> next_offset;  // no earlier owner can move it any more
  bool settling = false;  // by position: a transaction of an earlier owner is still open
};

// Takes partitions under new epochs, all in one statement. Leaves out those that another worker
// took meanwhile. Precondition: all of one group and owner.
std::map<TopicPartition, Taken> take_partitions(Session& session, std::vector<Taking> takings);
std::optional<Taken> take_partition(Session& session, const Taking& taking);

struct AgreedStart {
  std::int64_t epoch = 0;
  std::int64_t offset = 0;
  std::string cluster_id;
  std::string topic_id;  // empty: the client cannot tell
  std::int32_t generation = 1;
  std::optional<std::int64_t> from;  // the offset at which it would have gone on
  Jump jump = Jump::none;
  std::int64_t highest_at_least = 0;  // `highest` becomes this, if it is lower
  // With this start the log gets its number. `known_logs` are the facts behind that decision.
  bool learns_log = false;
  std::vector<KnownLog> known_logs = {};
  // PostgreSQL may have forgotten calls for messages below this offset. Nothing: as it was.
  std::optional<std::int64_t> doubt_below = {};
  bool at_log_end = false;  // there is nothing to do
};

struct StartWrite {
  Taking taking;
  AgreedStart start;
};

// Writes the starts of partitions, with their jumps, in one transaction. Returns `highest` of each.
// Leaves out partitions that are not ours any more, or whose log another group numbered meanwhile.
// Precondition: all of one group, owner and cluster.
std::map<TopicPartition, std::int64_t> agree_starts(Session& session,
                                                    std::vector<StartWrite> starts);
std::optional<std::int64_t> agree_start(Session& session, const Taking& taking,
                                        const AgreedStart& start);

// If both are still what the start found, the partition is held.
struct Held {
  std::int64_t epoch = 0;
  std::string incarnation;  // empty if a loss has emptied it and no worker has looked since
  std::string unlogged_id;  // see StoreIdentity; likewise
  std::int64_t next_offset = 0;
};

// The partitions that `owner` took and no other worker has taken since.
std::map<TopicPartition, Held> read_held(Session& session, const std::string& group,
                                         const std::string& owner);

struct CheckpointWrite {
  TopicPartition partition;
  std::string incarnation;  // as read_store() told when the partition started
  std::int64_t epoch = 0;
  std::int64_t last_written = 0;
  std::int64_t next_offset = 0;
  bool by_position = false;      // it passes rows of hapax.positions, which are removed
  std::string last_record = {};  // below next_offset (worker::ReadRecord); empty: as it was
};

// Writes all checkpoints at once. The commit waits for the disk even if synchronous_commit is off
// (guarantees I4). Returns the partitions that were written. If one is missing, it is not ours any
// more, or PostgreSQL has lost commits. `position`, if not null, receives PostgreSQL's position if
// any was written.
std::set<TopicPartition> write_checkpoints(Session& session, const std::string& group,
                                           std::vector<CheckpointWrite> writes,
                                           std::optional<WalPosition>* position = nullptr);

// A partition that its worker leaves. Epoch and incarnation are those of its start.
struct Leaving {
  TopicPartition partition;
  std::int64_t epoch = 0;
  std::string incarnation;
  std::int64_t highest_settled = 0;  // one more than the highest settled offset
};

// Records clean leaves.
void leave_partitions(Session& session, const std::string& group, std::vector<Leaving> leaving);

void open_halt(Session& session, const std::string& group, const Halt& halt);
// The same, in the caller's transaction.
void add_halt(Transaction& transaction, const std::string& group, const Halt& halt);
Halt halt_of(const Row& row);  // of hapax.halts, with all that Halt holds
std::vector<Halt> read_halts(Session& session, const std::string& group);

struct PriorAttempt {
  int count = 0;
  std::int64_t wait_ms = 0;     // from now
  std::int64_t lasting_ms = 0;  // from the first failed run to the last
  int crashes = 0;              // runs in cautious mode that did not come back
};

// What PostgreSQL knows of messages at or above an offset: failed runs, dead letters, and offsets
// that an operator skips.
struct KnownMessages {
  std::map<std::int64_t, PriorAttempt> attempts;
  std::map<std::int64_t, std::string> skips;  // offset → who and why
  std::set<std::int64_t> unreadable;          // of these, the offsets that no worker could read
  std::set<std::int64_t> letters;             // at or above `highest`, and not by position
  std::set<std::int64_t> settled;             // by position: offsets that took effect already
};

struct Standing {
  TopicPartition partition;
  std::int32_t generation = 1;
  std::int64_t offset = 0;
  bool by_position = false;
  std::int64_t epoch = 0;  // under which it starts
};

// Precondition: no partition that is by position is `settling`.
std::map<TopicPartition, KnownMessages> read_known_messages(Session& session,
                                                            const std::string& group,
                                                            const std::vector<Standing>& standings);

}  // namespace hapax::store
