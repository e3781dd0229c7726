// Runs a dead letter again because an operator asked for it: the way of a message, under the key
// rules of a replay. No threads, no Kafka.
//
// The worker first claims the replay's row and commits that, so a run that kills the process is
// counted. Then one transaction locks the row, claims the key, runs the handler, ends the row and
// the dead letter, seals and commits. A second run may begin: by another worker, after a lease ran
// out, or after a COMMIT in doubt. It finds the replay ended, so the effect is there once.
//
// If retention has removed a letter's key, hapax cannot know whether the operation took effect, and
// a replay could double it (guarantees I8). So it is refused.
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

#include "flow/lane_session.hpp"
#include "flow/route.hpp"
#include "flow/task.hpp"
#include "hapax/handler.hpp"
#include "outside/callers.hpp"
#include "outside/holder.hpp"
#include "store/message/replays.hpp"
#include "store/session.hpp"
#include "traces/tracer.hpp"

namespace hapax::flow {

struct Replayed {
  enum class Result {
    nothing,    // none is due
    completed,  // its effect is there, once
    refused,    // its key's history forbids it, or it still has no key
    failed,     // for good: its handler rejected it, or failed too often
    later,      // it stays wanted and is due again later
    outage,     // PostgreSQL is away, or does not let replays be claimed
  };
  Result result = Result::nothing;
  std::int64_t replay = 0;
  std::int64_t dead_letter = 0;
  std::string topic = {};
  std::string detail = {};  // for people; may quote the message, so never for the log
  std::string sqlstate = {};
  std::string trace_id = {};   // of its run; "": none
  bool halted = false;         // the handler ended its transaction: the route is halted
  bool awaits_schema = false;  // later: the schema registry was asked first
};

const char* name_of(Replayed::Result result);

// Owns one PostgreSQL session; makes a new one when the old one is gone.
//
// Thread safety: none.
class Replayer {
 public:
  // What routes that call to the outside need.
  struct Outside {
    outside::Holder& holder;  // to call under
    // Blocks: until the call has come back; runs `meanwhile` every few seconds.
    std::function<void(const Route&, const store::Source&, outside::CallToMake&,
                       const std::function<void()>& meanwhile)>
        make_call;
    // Blocks: for that time. Returns false if the process ends.
    std::function<bool(std::chrono::milliseconds)> wait;
  };
  struct Setup {
    std::function<store::Session()> connect;
    std::string group;
    std::string worker;
    std::vector<std::pair<const Route*, Handler*>> routes;  // outlive this
    std::uint64_t seed = 0;                                 // of the jitter
    // Called before each run of a handler, and after it with null; for a watchdog; may be empty.
    std::function<void(const Route*, const store::Source&)> running = {};
    std::chrono::seconds lease{10};  // from the claim to the lock; a run holds the lock, not it
    // A session this old is replaced before the next claim, because after a failover the old
    // primary may live on.
    std::chrono::milliseconds session_lasts = std::chrono::minutes(1);
    std::optional<Outside> outside = {};  // nothing if no route calls to the outside
    traces::Tracer* tracer = nullptr;     // null: traces are off
    bool log_error_text = false;          // answers may be in the log
  };
  explicit Replayer(Setup setup);

  // Claims the next replay that is due and runs it.
  // Throws: nothing of the handler's or PostgreSQL's.
  // Blocks: as long as the handler, plus PostgreSQL's answers (bounded by its timeouts).
  Replayed run_next();

  // How many of the group's replays have not ended; nothing if PostgreSQL does not answer.
  // Throws: nothing. Blocks: for PostgreSQL's answers.
  std::optional<std::size_t> count_open();

 private:
  using Claimed = store::ClaimedReplay;
  using Note = store::ReplayNote;

  // One run of a claimed replay; a local of run_claimed().
  struct Run {
    const Claimed& claimed;
    const Route& route;
    Handler& handler;
    bool session_was_new;                      // no handler has run in it
    store::Phase phase = store::Phase::claim;  // decides what an exception means
    std::int32_t partition = 0;                // of the message, once it is read
    std::int32_t generation = 1;
    std::string crashed = {};                    // why it must not run again; "": it may
    std::optional<key::Identity> identity = {};  // of an outside route
    store::Source source = {};
    std::optional<Answered> answered = {};  // of an outside route: to be booked
    bool asked = false;                     // the registry, for its schema
    bool has_span = false;                  // once its message is read
    const traces::Trace* trace = nullptr;   // null: traces are off
    std::string trace_id = {};              // "": none
    store::ClaimRequest request() const {
      return {.identity = *identity,
              .scope = route.key.scope,
              .source = source,
              .retention = route.retention};
    }
  };
  // Runs of a replay that were not counted, in this process.
  struct Uncounted {
    int agains = 0;   // in a row
    int outages = 0;  // connections lost while it ran
  };

  Replayed run_claimed(const Claimed& claimed);
  // Runs it, and leaves the session clean for the next one. Returns what is to be recorded of the
  // run; nothing if it completed. Throws: nothing.
  std::optional<Note> run_to_end(Run& current);
  // Reads and judges the letter. Calls first, if the route calls.
  std::optional<Note> run(Run& current);
  // Claims the key, runs the handler, and commits both.
  std::optional<Note> take_effect(Run& current, const store::ReplayedLetter& letter,
                                  const store::ClaimRequest& request, const Message& message,
                                  store::Transaction& transaction);
  // Asks for the schema of the message, without a transaction. The replay runs afterwards.
  std::optional<Note> ask_registry(Run& current, store::Transaction& transaction,
                                   const Message& original);
  static std::optional<std::string> claim(const Run& current, const store::ReplayedLetter& letter,
                                          const store::ClaimRequest& request,
                                          store::Transaction& transaction, std::string& nonce);
  // Makes the call, or finds its answer, and sets Run::answered. Otherwise returns what is to be
  // recorded.
  std::optional<Note> call(Run& current, const Message& message);
  std::optional<Note> call_in_hand(Run& current, outside::CallToMake& call, store::HolderId holder);
  void leave(const Run& current, outside::CallToMake& call, store::HolderId holder, bool uncalled);
  void extend(const Run& current);
  std::optional<Note> settle_call(Run& current, const store::TakenCall& taken,
                                  outside::Ended ended);
  Note end_call(const Run& current, std::int64_t token, store::CallEnd end, std::string why);
  void end_booking(const Run& current, const std::string& why);
  // Runs the statement again until PostgreSQL has taken it, however long it is away. Only this
  // process knows what came of a call.
  void tell(const std::function<void()>& statement);
  void tell_of_refusal(const store::DatabaseError& error);
  // Whether its last run was not counted. Then the handler may have dropped hapax's statements.
  bool ran_again(const Claimed& claimed) const;
  Note failed(const Run& current, const std::exception_ptr& error);
  Note count_run(const Run& current, const store::Fault& fault,
                 std::optional<std::chrono::milliseconds> after);
  Note ended_transaction(const Run& current, const store::Fault& fault) const;
  void begin_span(Run& current, const Message& message);
  void end_span(const std::optional<Note>& note);
  void pay();  // throws: DatabaseError

  Setup setup_;
  std::vector<std::string> topics_;
  LaneSession session_;
  int ran_in_ = 0;  // the number of the session in which a handler ran last
  // The end of a run that PostgreSQL does not know yet. Until it does, nothing else is claimed.
  std::optional<std::pair<Claimed, Note>> owed_;
  std::map<std::int64_t, Uncounted> uncounted_;  // by replay
  std::minstd_rand random_;
  traces::Runs spans_;
  std::string said_;  // the last refusal, in the log
};

}  // namespace hapax::flow
