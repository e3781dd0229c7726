// Taking an idempotency key, sealing the outcome, giving up: the SQL of the promise.
//
// Thread safety: none; each call uses the caller's transaction.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "key/identity.hpp"
#include "store/message/dead_letter.hpp"
#include "store/message/source.hpp"
#include "store/transaction.hpp"

namespace hapax::store {

// What a COMMIT of effects waits for: for what synchronous_commit asks, or for nothing. In the
// second case the next checkpoint makes them durable.
enum class Durability { synchronous, checkpoint };

// What is claimed, and by which message.
struct ClaimRequest {
  const key::Identity& identity;
  const std::string& scope;
  const Source& source;
  std::chrono::seconds retention;
  // Prepare the completion after the handler, because an earlier run of the handler dropped it.
  bool prepares_late = false;
  std::int64_t epoch = 0;  // of its partition, as its worker took it; 0: no worker has it
  std::optional<std::chrono::milliseconds> wait = {};  // for the key; nothing: lock_timeout
  // The offset is claimed instead of the key (routes[].key "position").
  bool by_position = false;
  // With by_position: a transaction of this worker may have settled it, and may not have ended yet.
  bool in_doubt = false;
  // If another message has the key, the claim also reads its answer.
  bool reads_answer = false;
};

// The row of the message that has the key.
struct KeyHolder {
  std::string status;  // completed, failed, forgotten, started
  key::Fingerprint fingerprint;
  std::string group, topic;
  std::int32_t generation = 0;
  std::int32_t partition = 0;
  std::int64_t offset = 0;

  bool is(const Source& source) const;
};

// Of an operation that calls to the outside and goes on: called, or answered and not booked.
inline bool is_begun_call(const KeyHolder& holder) {
  return holder.status == "started" || holder.status == "answered";
}

// What is stored with a key, for a client that sends its request again.
struct StoredAnswer {
  KeyHolder holder;
  std::optional<std::string> result;  // JSON
  std::chrono::sys_seconds expires_at;
};

struct Claim {
  std::string nonce;                        // for the seal
  std::optional<KeyHolder> holder;          // nothing: the key is ours
  bool fenced = false;                      // the key is ours, and the partition is not: roll back
  std::optional<StoredAnswer> answer = {};  // of the holder, if it was asked for
};

// From a row of read_key.sql or read_batch_keys.sql.
KeyHolder holder_of(const Row& row);
// From a row of read_answer.sql or read_batch_answers.sql.
StoredAnswer answer_of(const Row& row);

// Reads who has the key, outside of any transaction, for a message that is likely to be a
// duplicate. Nothing: no committed transaction has the key.
// Throws: DatabaseError (Phase::claim).
std::optional<KeyHolder> read_holder(Session& session, const ClaimRequest& request);

// The same in a transaction. Throws: DatabaseError (Phase::claim).
std::optional<KeyHolder> read_holder(Transaction& transaction, const ClaimRequest& request);

// What came of taking a key. If it is not ours, who has it is read later.
struct TakenKey {
  std::string nonce;
  bool ours = false;
  std::optional<std::int64_t> epoch = {};  // of the partition, if the key is ours
  bool settled = false;                    // by position: an earlier transaction settled it
};

// Prepares the completion, once for each session and before the handler runs. The handler may take
// a role that cannot prepare it. Throws: DatabaseError.
void prepare_completion(Session& session);

// Opens the transaction and takes the key if it is free.
// Throws: DatabaseError (Phase::claim). Blocks: at most lock_timeout for another transaction's
//   uncommitted claim.
Claim claim(Transaction& transaction, const ClaimRequest& request);

// The same after complete_and_take() has tried to take the key.
Claim claim(Transaction& transaction, const ClaimRequest& request, TakenKey taken);

// What came of taking a key over. `lost`: another transaction was faster. `fenced`: see Claim.
enum class TakeOver { ours, lost, fenced };

// Takes a `failed` or `forgotten` key over from its holder.
TakeOver take_over(Transaction& transaction, const ClaimRequest& request, const KeyHolder& holder);

// Counts a duplicate on the completed key. That arms the seal for what the handler writes.
// False: the key is not completed any more.
bool count_duplicate(Transaction& transaction, const ClaimRequest& request,
                     std::optional<std::string>& stored_result);

struct Known {
  bool dead_letter = false;
  bool attempted = false;
};

// Whether PostgreSQL knows a message by its coordinates, though it has forgotten the key.
// Precondition: the key was claimed before.
Known known_coordinates(Transaction& transaction, const Source& source, const std::string& scope,
                        std::chrono::seconds retention);

// Whether the holder was given up on, and is the outbox record with this hapax-origin.
bool gave_up_on_record(Transaction& transaction, const KeyHolder& holder, std::string_view origin);

// The completion: sends what was added to the transaction, the result, the seal and COMMIT
// together.
// Throws: DatabaseError (Phase::complete).
void complete(Transaction& transaction, const ClaimRequest& request, const std::string& nonce,
              const std::optional<std::string>& result,
              Durability durability = Durability::synchronous);

// The same, and takes the key of the `next` message in a new transaction, all in one round trip.
// Nothing if only the take failed: this message is complete, and the next one meets the error when
// it is claimed.
// Throws: DatabaseError (Phase::complete), of this message; in_doubt if it cannot be told which of
// the two failed.
// Blocks: at most 50 ms for another transaction's uncommitted claim.
std::optional<TakenKey> complete_and_take(Transaction& transaction, const ClaimRequest& request,
                                          const std::string& nonce,
                                          const std::optional<std::string>& result,
                                          Durability durability, const ClaimRequest& next);

// The last part of the completion, also of a batch: seals and commits all.
// Throws: DatabaseError; HX002 if a handler has ended the transaction.
void seal(Transaction& transaction, const std::string& nonce,
          Durability durability = Durability::synchronous);

// Called before the next handler of a batch: what it writes fails with HX002 if a handler before it
// has ended the transaction. Otherwise it could stand without its key. Throws: DatabaseError.
void add_look(Transaction& transaction, const std::string& nonce);

// Called after a handler has thrown: looks whether the transaction that claimed is still there. If
// a handler committed an effect by itself and then threw, each attempt would add that effect again.
// Throws: DatabaseError HX002 if the transaction or the connection is gone; nothing else.
// Blocks: one round trip or two. Precondition: the transaction is rolled back afterwards.
void refuse_ended(Transaction& transaction, const std::string& nonce);

// Gives the claimed operation up: sets the key to `failed`, keeps the dead letter, seals and
// commits. Returns the letter's id. Returns nothing if there was a letter already, which is then
// open again.
std::optional<std::int64_t> fail(Transaction& transaction, const ClaimRequest& request,
                                 const std::string& nonce, const DeadLetter& letter);

}  // namespace hapax::store
