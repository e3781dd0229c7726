// Second runs of dead letters, as a worker claims, locks and ends them.
//
// The number of runs begun is the claim's token: a write that comes after a later claim misses.
//
// Thread safety: none; each call uses the caller's session or transaction.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hapax/message.hpp"
#include "key/identity.hpp"
#include "store/message/dead_letter.hpp"
#include "store/message/source.hpp"
#include "store/transaction.hpp"
#include "store/worker/checkpoints.hpp"

namespace hapax::store {

struct ClaimedReplay {
  std::int64_t id = 0;
  std::int64_t dead_letter = 0;
  std::string topic;
  int runs = 0;            // begun, this one included
  bool abandoned = false;  // the run before never recorded its end: its process died
};

// A replay's message, as it was (its payload as edited), and what the key rules ask of the letter.
struct ReplayedLetter {
  Source source;
  std::int64_t timestamp_ms = -1;
  TimestampType timestamp_type = TimestampType::none;
  std::optional<std::string> record_key, payload;
  LetterHeaders headers;
  bool edited = false;
  std::string scope;
  std::optional<std::string> key, tenant;  // nothing: it was given up on before it had any
  bool discarded = false;
  bool without_bytes = false;  // the record's key, payload and headers were not kept
};

// How many of a group's replays have not ended, counted up to 10,000.
// Throws: DatabaseError (Phase::account).
std::size_t count_open_replays(Session& session, const std::string& group);

// Claims the next replay that is due for `lease` in a transaction of its own; nothing if none
// is. Throws: DatabaseError (Phase::account).
std::optional<ClaimedReplay> claim_replay(Session& session, const std::string& group,
                                          const std::vector<std::string>& topics,
                                          const std::string& worker, std::chrono::seconds lease);

// The claim lasts `lease` more from now. Throws: DatabaseError (Phase::account).
void extend_replay(Session& session, const ClaimedReplay& replay, std::chrono::seconds lease);

// Locks the replay for this transaction; nothing if it ended or was claimed again since.
// Throws: DatabaseError (Phase::claim). Blocks: at most lock_timeout.
std::optional<ReplayedLetter> lock_replay(Transaction& transaction, const ClaimedReplay& replay);

// Whether keys of the scope that were completed since the letter was given up on are still known.
// `by_position`: its key is its position, which no other message has.
// Precondition: the key was claimed before. Throws: DatabaseError (Phase::claim).
bool keys_are_kept(Transaction& transaction, const ClaimedReplay& replay, const std::string& scope,
                   std::chrono::seconds retention, bool by_position);

// Of a route whose key is the position: a worker that takes the partition waits for the end of this
// transaction. Throws: DatabaseError (Phase::claim). Blocks: at most lock_timeout.
void share_partition(Transaction& transaction, const Source& source);
// And then leaves the message out. Throws: DatabaseError (Phase::claim).
void settle_replayed(Transaction& transaction, const Source& source);
// Of the same: whether its message may have run since it was given up on, because an operator
// decided so. Throws: DatabaseError (Phase::claim).
bool may_have_run_since(Transaction& transaction, const ClaimedReplay& replay);

// A call that another replay of a dead letter made, and that is not done.
struct OtherCall {
  std::string key, status;  // `started`, `answered` or `unknown`
};

// Whether the schema keeps which replay has made which call: from 18 on.
// Throws: DatabaseError (Phase::claim).
bool keeps_calls_of_replays(Transaction& transaction);

// Whether the replay has called, or carries out a decision about a call. False on a schema that
// does not keep it.
bool has_call(Transaction& transaction, const ClaimedReplay& replay);

// Whether the replay is still that run's; then it stays so until the transaction ends.
// Throws: DatabaseError (Phase::claim).
bool lock_claim(Transaction& transaction, std::int64_t replay, int runs);

// The call is about to be made, under this token. Nothing on a schema that does not keep it.
// Throws: DatabaseError (Phase::claim).
void note_call(Transaction& transaction, std::int64_t replay, const key::Identity& identity,
               std::int64_t token);

// Of the replay's dead letter, under another key than this one; nothing on a schema that does not
// keep it. Throws: DatabaseError (Phase::claim).
std::optional<OtherCall> read_other_call(Transaction& transaction, const ClaimedReplay& replay,
                                         const std::string& scope, const key::Identity& identity);

// Adds to the transaction's text: the replay completed, and its dead letter is ended as replayed.
// Precondition: lock_replay has locked it.
void add_completed(Transaction& transaction, const ClaimedReplay& replay);

// How a run ended that took no effect.
struct ReplayNote {
  enum class What {
    put_back,  // as if it had not begun
    tried,     // failed; again after `wait`
    refused,
    failed,  // for good
  };
  What what = What::put_back;
  std::string text;  // for people
  std::string sqlstate = {};
  std::chrono::milliseconds wait{0};
  std::optional<Halt> halt = {};  // opened in the same transaction
};

// Writes the note in a transaction of its own; nothing if the replay ended or was claimed again
// since, so it may be written twice.
// Throws: DatabaseError (Phase::account). Blocks: at most lock_timeout.
void write_note(Session& session, const ClaimedReplay& replay, const ReplayNote& note,
                const std::string& worker, const std::string& group);

}  // namespace hapax::store
