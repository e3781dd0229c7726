// The second run of a dead letter that an operator wants: the way of a message once more, under
// the key rules of a replay. No threads, no Kafka.
//
// The replay's row is claimed and committed first, so that a run that kills the process has counted
// itself. Then one transaction: the row locked, the key claimed, the handler, row and dead letter
// ended, the seal, COMMIT. So whoever comes second (another worker, a lease that ran out, a COMMIT
// in doubt) finds it ended, and the effect is there once.
//
// A replay that was let run after all its keys are forgotten could double an effect (guarantees
// I8), so what nobody can know any more is refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "flow/route.hpp"
#include "hapax/handler.hpp"
#include "key/identity.hpp"
#include "store/claim.hpp"
#include "store/replays.hpp"
#include "store/session.hpp"

namespace hapax::flow {

struct Replayed {
  enum class Result {
    nothing,    // none is due
    completed,  // its effect is there, once
    refused,    // its key's history forbids it, or it still has no key
    failed,     // for good: its handler said no, or said it too often
    later,      // it stays wanted and is due again later
    outage,     // PostgreSQL is away, or does not let replays be claimed
  };
  Result result = Result::nothing;
  std::int64_t replay = 0;
  std::int64_t dead_letter = 0;
  std::string topic = {};
  std::string detail = {};  // for people; may quote the message, so never for the log
  std::string sqlstate = {};
  bool halted = false;  // the handler ended its transaction: the route is halted
};

const char* name_of(Replayed::Result result);

// Owns one PostgreSQL session; makes a new one when the old one is gone.
//
// Thread safety: none.
class Replayer {
 public:
  struct Setup {
    std::function<store::Session()> connect;
    std::string group;
    std::string worker;
    std::vector<std::pair<const Route*, Handler*>> routes;  // outlive this
    std::uint64_t seed = 0;                                 // of the jitter
    // Called before each run of a handler, and after it with null; for a watchdog; may be empty.
    std::function<void(const Route*, const store::Source&)> running = {};
    std::chrono::seconds lease{10};  // from the claim to the lock; a run holds the lock, not it
  };
  explicit Replayer(Setup setup);

  // Claims the next replay that is due and runs it.
  // Throws: nothing of the handler's or PostgreSQL's.
  // Blocks: as long as the handler, plus PostgreSQL's answers (bounded by its timeouts).
  Replayed run_next();

  // How many of the group's replays have not ended; nothing where PostgreSQL cannot be asked.
  // Throws: nothing. Blocks: for PostgreSQL's answers.
  std::optional<std::size_t> count_open();

 private:
  using Claimed = store::ClaimedReplay;
  using Note = store::ReplayNote;

  bool reachable(std::string& why);
  void drop_session();
  void clean_session();
  Replayed run_claimed(const Claimed& claimed);
  // What is to be noted of it; nothing where it completed.
  std::optional<Note> run(const Claimed& claimed, const Route& route, Handler& handler);
  std::optional<std::string> refusal(const Claimed& claimed, const Route& route,
                                     const store::ReplayedLetter& letter,
                                     const store::ClaimRequest& request, const store::Claim& claim,
                                     store::Transaction& transaction);
  Note failed(const Claimed& claimed, const Route& route, const std::exception_ptr& error);
  Note again(const Claimed& claimed, const Route& route, const store::Fault& fault);
  Note lost_connection(const Claimed& claimed, const Route& route, const store::Fault& fault);
  Note count_run(const Claimed& claimed, const Route& route, const store::Fault& fault,
                 std::optional<std::chrono::milliseconds> after);
  Note ended_transaction(const Route& route, const store::Fault& fault) const;
  void pay();  // throws: DatabaseError

  Setup setup_;
  std::vector<std::string> topics_;
  std::optional<store::Session> session_;
  bool has_new_session_ = false;  // no handler has run in it: nothing in it can be stale
  store::Phase phase_ = store::Phase::connect;
  std::int32_t partition_ = 0;  // of the message that runs
  std::int32_t generation_ = 1;
  // What PostgreSQL does not know yet of a run; nothing else is claimed before it does.
  std::optional<std::pair<Claimed, Note>> owed_;
  std::map<std::int64_t, int> lost_;    // connections lost while it ran, by replay
  std::map<std::int64_t, int> agains_;  // runs in a row that were not counted, by replay
  std::minstd_rand random_;
};

}  // namespace hapax::flow
