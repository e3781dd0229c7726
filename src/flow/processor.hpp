// The way of one message: claim, handle, complete. The promise lives here; no threads, no Kafka.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flow/batch_limit.hpp"
#include "flow/breaker.hpp"
#include "flow/failure_policy.hpp"
#include "flow/lane_session.hpp"
#include "flow/outcome.hpp"
#include "flow/route.hpp"
#include "hapax/handler.hpp"
#include "key/identity.hpp"
#include "store/claim.hpp"
#include "store/session.hpp"
#include "store/source.hpp"

namespace hapax::flow {

// One message to process, with what the worker knows of it.
struct Task {
  const Route& route;
  const Message& message;
  const std::string& group;
  std::int32_t generation = 1;
  // Below this offset a message that nobody remembers halts instead of running (guarantees I8).
  std::int64_t guard_below = 0;
  int attempts = 0;       // failed runs so far
  int outages = 0;        // connections lost while it ran, in this process
  bool cautious = false;  // announce the run first: the last processes died (guarantees)
  const std::string* skip = nullptr;     // an operator's decision not to run it: who and why
  std::chrono::milliseconds failing{0};  // from its first failed run to its last
  bool keep_bytes = true;  // of a dead letter; without where PostgreSQL could not take them
  std::string_view incarnation = {};  // of PostgreSQL at the partition's start; empty: any
  bool announced = false;      // by this process, in a cautious run that could not be withdrawn
  bool remembered = false;     // in hapax.attempts at the partition's start
  Breaker* breaker = nullptr;  // of the route, in this process
  int agains = 0;              // runs in a row that ended in Result::again, in this process
  std::int64_t epoch = 0;      // of its partition, as its worker took it; 0: no worker has it

  bool is_in_attempts() const { return attempts > 0 || announced || remembered; }
};

// One message of a batch. Those of one order key follow each other, in offset order.
struct Job {
  Task task;
  Handler* handler;
  std::size_t order_key;  // any number; equal for messages of one order key
};

// Owns one PostgreSQL session; makes a new one when the old one is gone.
//
// Thread safety: none; each lane has its own.
class Processor {
 public:
  using Connect = LaneSession::Connect;
  using Clock = std::chrono::steady_clock;
  using HandlerWatch = std::function<void(const Task*, Clock::time_point now)>;
  using Next = std::function<const Task*()>;

  // `seed`: of the jitter.
  // `watch`: called before each run of a handler, and with null after it; may be empty.
  // `about_to_clean`: called with the session as a run left it, for the test kit; may be empty.
  Processor(Connect connect, std::uint64_t seed, HandlerWatch watch = {},
            LaneSession::Look about_to_clean = {})
      : session_(std::move(connect), std::move(about_to_clean)),
        watch_(std::move(watch)),
        random_(seed) {}

  // Processes the message once. Whatever happens is in the Outcome; after a settled one the facts
  // are committed.
  // Throws: nothing of the handler's or PostgreSQL's.
  // Blocks: as long as the handler, plus PostgreSQL's answers (bounded by its timeouts).
  //
  // `next`: asked at most once, when the handler has run: the message that process() is called for
  // next, or nothing. Its key is then taken in the round trip that commits this one, which saves it
  // one. Whoever does not go on with that message at once calls abandon().
  Outcome process(const Task& task, Handler& handler, const Next& next = {});

  // Gives up a key that was taken for the next message. Throws: nothing. Blocks: one round trip.
  void abandon() noexcept { ahead_.reset(); }

  // Processes messages of one route in as few transactions as their fates allow. What stands in the
  // way of the others (a failure, a drifted or taken-over key, a dead letter) runs alone, in its
  // place; the outcomes are those of one by one. Within one transaction handlers share session
  // settings, now() and locks: that is what a route opts into.
  // Precondition: all of one route; not cautious.
  std::vector<Outcome> process(std::span<const Job> jobs);

  // How many messages a transaction should have now.
  std::size_t batch_limit() const { return batch_limit_.value(); }

  // True when PostgreSQL answers; makes the session if need be, and withdraws a cautious run.
  // `why` tells why not.
  // Blocks: at most the connect timeout.
  bool reachable(std::string& why) { return session_.is_reachable(why); }

 private:
  // A handler runs, as the watchdog sees it, while this lives.
  class Watched {
   public:
    Watched(const HandlerWatch& watch, const Task& task, Clock::time_point now) : watch_(watch) {
      if (watch_) watch_(&task, now);
    }
    ~Watched() {
      if (watch_) watch_(nullptr, {});
    }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

   private:
    const HandlerWatch& watch_;
  };

  Outcome process_once(const Task& task, Handler& handler, const Next& next);
  Outcome derive_and_run(const Task& task, Handler& handler, const Next& next);
  std::optional<Outcome> announce(const Task& task);
  // A key row or a guard that decides without running the handler.
  std::optional<Outcome> judge(const Task& task, const store::ClaimRequest& request,
                               const store::Claim& claim, store::Transaction& transaction);
  static std::optional<Outcome> judge_coordinates(const Task& task, const store::Source& source,
                                                  store::Transaction& transaction);
  Outcome judge_completed(const Task& task, const store::ClaimRequest& request,
                          const store::KeyHolder& holder, store::Transaction& transaction);
  static bool is_same(const Task& task, const store::ClaimRequest& request,
                      const store::KeyHolder& holder);
  bool is_known_duplicate(const Task& task, const store::ClaimRequest& request,
                          const Handler& handler);
  Outcome run(const Task& task, const key::Identity& identity, Handler& handler, const Next& next);
  // The next message, whose key was taken with the COMMIT of the one before it.
  struct Ahead {
    const Task* task;  // only until taken
    const Message* message;
    key::Identity identity;
    store::TakenKey taken = {};
    std::unique_ptr<store::Transaction> transaction = {};
  };
  std::optional<Ahead> look_ahead(const Task* following) const;
  void complete(std::unique_ptr<store::Transaction> transaction, const Task& task,
                const store::ClaimRequest& request, const std::string& nonce,
                const std::optional<std::string>& result, const Next& next);
  Outcome run_duplicate(const Task& task, const store::ClaimRequest& request,
                        const std::string& nonce, store::Transaction& transaction,
                        Handler& handler);
  Outcome failed(const Task& task, const key::Identity& identity, const std::exception_ptr& error);
  Outcome again(const Task& task, const key::Identity& identity, const store::Fault& fault,
                const char* reason);
  Outcome lost_connection(const Task& task, const key::Identity& identity,
                          const store::Fault& fault);
  Outcome commit_in_doubt(const Task& task, const key::Identity& identity,
                          const store::Fault& fault);
  Outcome count_attempt(const Task& task, const key::Identity& identity, const store::Fault& fault,
                        std::optional<std::chrono::milliseconds> after);
  Outcome give_up(const Task& task, const key::Identity* identity, Outcome verdict);
  Outcome account_failed(const std::exception_ptr& error);
  std::optional<Outcome> give_up_without_bytes(const Task& task, const key::Identity* identity,
                                               Outcome verdict, const store::Fault& fault);
  void forget_attempts(const Task& task);

  // processor_batch.cpp
  enum class Tried { done, some_alone, in_the_way, smaller, given_up };
  // A run in a batch whose handler failed by itself.
  struct FailedRun {
    store::Fault fault;
    std::optional<std::chrono::milliseconds> after;
  };
  struct Attempt {
    Tried tried = Tried::done;
    std::vector<std::size_t> alone = {};       // some_alone, given_up: which of the segment
    Outcome verdict = {};                      // given_up: what is true of all of it
    std::optional<FailedRun> failed_run = {};  // some_alone: of the one that failed
  };
  static std::optional<FailedRun> failed_run_of(const Task& task, const std::exception_ptr& error);
  Outcome count_run_of_batch(const Job& job, const FailedRun& run);
  using Identities = std::span<const std::optional<key::Identity>>;
  Attempt try_segment(std::span<const Job> jobs, Identities identities,
                      std::span<Outcome> outcomes);
  Attempt run_segment(std::span<const Job> jobs, Identities identities, std::span<Outcome> outcomes,
                      std::size_t& running);
  using Results = std::vector<std::pair<std::size_t, std::string>>;  // by request
  Results run_handlers(std::span<const Job> jobs, std::span<Outcome> outcomes,
                       std::span<const std::optional<std::size_t>> ours,
                       std::span<const store::ClaimRequest> requests, const std::string& nonce,
                       store::Transaction& transaction, std::size_t& running);
  Attempt segment_failed(const std::exception_ptr& error, std::span<const Job> jobs,
                         std::size_t running);
  store::Source source_of(const Task& task) const;

  LaneSession session_;
  HandlerWatch watch_;
  BatchLimit batch_limit_;
  std::optional<Ahead> ahead_;    // after session_, which it uses
  bool has_new_session_ = false;  // made for this run: nothing in it can be stale
  bool run_anew_ = false;         // what failed may be the old session's fault
  int duplicates_in_a_row_ = 0;
  store::Phase phase_ = store::Phase::connect;
  std::minstd_rand random_;
};

}  // namespace hapax::flow
