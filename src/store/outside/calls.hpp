// The keys of operations that call to the outside. A worker takes a key before the call, and keeps
// the answer with it.
//
//   - none, failed, forgotten ─take_calls─▶ started
//   - started, its holder's lease over ─take_calls─▶ started, under a larger token
//   - started ─keep_answers─▶ answered
//   - answered ─claim_answered─▶ completed
//   - started, answered ─end_call─▶ unknown, completed (refused), failed (not called)
//
// Each take draws a token. A write with an older token changes nothing, so of two holders one wins.
//
// Thread safety: none; each call uses the caller's session or transaction.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/message/claim.hpp"
#include "store/message/dead_letter.hpp"

namespace hapax::store {

using HolderId = std::int64_t;

// Makes a new holder with a lease for `lease`. Throws: DatabaseError (Phase::account).
HolderId register_holder(Session& session, const std::string& group, const std::string& worker,
                         std::chrono::milliseconds lease);

// Renews the lease for `lease` from now on. False if the lease is over or gone.
// Throws: DatabaseError (Phase::account).
bool renew_holder(Session& session, HolderId holder, std::chrono::milliseconds lease);

// Throws: DatabaseError (Phase::account).
void end_holder(Session& session, HolderId holder);

struct CallRequest {
  ClaimRequest claim;
  bool alone = false;       // the process does nothing else
  std::int64_t replay = 0;  // whose call it is to be, if no message's
  int runs = 0;             // of that replay, as claimed
};

struct TakenCall {
  std::int64_t token = 0;
  int calls = 0;                           // takes that may have called, this one included
  int crashes = 0;                         // takes alone that the process did not survive
  std::chrono::milliseconds age{0};        // since the first call began
  std::optional<std::string> answer = {};  // nothing: the call is still to be made
};

struct Take {
  std::optional<TakenCall> taken = {};
  bool is_held = false;  // not taken: a holder with a lease calls, or a transaction has the key
  bool is_own = false;   // held by the holder that asks
};

// Takes keys and commits synchronously: all at once, or one by one if another transaction has one
// of them. Returns one Take for each request. `again`: a replay, which may take its own failed key.
// Precondition: no key twice, and none that the holder's process has in hand. So if a Take is
// is_own, an earlier take left it whose COMMIT came late. release_calls() gives it back.
// Throws: DatabaseError (Phase::claim). Some keys may be taken then; release_calls() gives them
// back.
// Blocks: at most 50 ms for another transaction, and if there is one, 2 ms for each request.
std::vector<Take> take_calls(Session& session, HolderId holder,
                             std::span<const CallRequest> requests, bool again = false);

struct KeptAnswer {
  const key::Identity& identity;
  const std::string& scope;
  std::int64_t token;
  const std::string& answer;  // JSON
};

enum class Kept {
  yes,
  superseded,  // another holder took the key over
  locked,      // a transaction has the key: again, later
};

// Keeps answers and commits synchronously: all at once, or one by one if another transaction has
// one of the keys. Returns one result for each. The caller may repeat it. Throws: DatabaseError
// (Phase::account).
// Blocks: at most 50 ms for another transaction, and if there is one, 2 ms for each answer.
std::vector<Kept> keep_answers(Session& session, std::span<const KeptAnswer> answers);

// The steps of a call whose answers are kept.
struct KeptSteps {
  std::map<std::string, std::string> answers;  // by name, each as JSON
  std::string payload;                         // the fingerprint that they are of; "": none is kept
  bool can_be_kept = true;                     // the schema before keeps no steps
};
// As PostgreSQL has them, a JSON object. The fingerprint is under a name that no step can have.
inline constexpr const char* kPayloadOfSteps = ":payload";

struct StepsToKeep {
  const key::Identity& identity;
  const std::string& scope;
  std::int64_t token;
  const KeptSteps& steps;   // all of the call
  const KeptSteps& before;  // as PostgreSQL has them
};

// As keep_answers(). If the call was given up on as unknown, the steps are kept for the operator,
// and the result is `superseded`.
std::vector<Kept> keep_steps(Session& session, std::span<const StepsToKeep> steps);

// Nothing: another holder took the key over. Throws: DatabaseError (Phase::account).
std::optional<KeptSteps> read_steps(Session& session, const key::Identity& identity,
                                    const std::string& scope, std::int64_t token);
// The same of any holder's call. Nothing: none is open. Throws: DatabaseError (Phase::claim).
std::optional<KeptSteps> read_steps(Transaction& transaction, const ClaimRequest& request);

// The payload of an open call that may have happened. Nothing: none is open, or it surely has not.
// Throws: DatabaseError (Phase::claim).
std::optional<key::Fingerprint> payload_called(Transaction& transaction,
                                               const ClaimRequest& request);

// Gives the key back, so it may be taken again at once. `uncalled`: surely nothing was sent. The
// caller may repeat it.
// Throws: DatabaseError (Phase::account).
void give_call_back(Session& session, const ClaimRequest& request, std::int64_t token,
                    bool uncalled);

// A key that PostgreSQL may keep for `holder`, though the holder's process does not go on with it.
struct HeldKey {
  key::Identity identity;
  std::string scope;
  HolderId holder = 0;
  bool uncalled = false;  // surely nothing was sent
};

// The keys that PostgreSQL keeps for the holder's calls. Throws: DatabaseError (Phase::account).
std::vector<HeldKey> read_keys_of_holder(Session& session, HolderId holder);

// Gives those of the keys back that are held. The caller may repeat it.
// Throws: DatabaseError (Phase::account).
void release_calls(Session& session, std::span<const HeldKey> keys);

enum class CallEnd {
  refused,   // by the other side: the key is completed
  uncalled,  // surely never called: the key is failed, as on other routes
  resting,  // surely not called behind the steps that are kept: the key stays, and a replay goes on
  unknown,  // an operator decides
};

// Ends the operation without booking it, keeps the letter, and commits. Returns the letter's id, or
// 0 if there was a letter already, which is then open again. Nothing if another holder took the key
// over.
// Throws: DatabaseError (Phase::account).
std::optional<std::int64_t> end_call(Session& session, const ClaimRequest& request,
                                     std::int64_t token, CallEnd end, const DeadLetter& letter);

// The same for a replay, which has its letter already. False if another holder took the key over.
bool end_replayed_call(Session& session, const ClaimRequest& request, std::int64_t token,
                       CallEnd end, const std::string& why);

// Whether the operation ended as `resting`, and whether the message is a dead letter.
// Throws: DatabaseError (Phase::claim).
enum class Rest { none, of_letter, of_another };
Rest rest_of(Transaction& transaction, const ClaimRequest& request);

// Whether a worker with a lease calls for the key now. Throws: DatabaseError (Phase::claim).
bool is_called(Transaction& transaction, const ClaimRequest& request);

// Keeps the request's fingerprint with its key in place of `kept`, which is of the same payload by
// another rule, and commits. Nothing if its call is not open. Throws: DatabaseError (Phase::claim).
void renew_fingerprint(Session& session, const ClaimRequest& request, const key::Fingerprint& kept);

// How many operations of these scopes wait for an operator, counted up to 10,000.
// Throws: DatabaseError (Phase::account).
std::size_t count_unknown(Session& session, const std::vector<std::string>& scopes);

}  // namespace hapax::store
