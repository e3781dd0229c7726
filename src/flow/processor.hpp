// The way of one message: claim, handle, complete. The promise lives here; no threads, no Kafka.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flow/attempt.hpp"
#include "flow/batch_limit.hpp"
#include "flow/lane_session.hpp"
#include "flow/next_claim.hpp"
#include "flow/outcome.hpp"
#include "flow/task.hpp"

namespace hapax::flow {

// Owns one PostgreSQL session, and makes a new one if the old one is gone.
//
// Thread safety: none; each lane has its own.
class Processor {
 public:
  using Connect = LaneSession::Connect;
  using Clock = std::chrono::steady_clock;
  using Next = flow::Next;

  // `seed`: of the jitter.
  // `about_to_clean`: called with the session as a run left it, for the test kit; may be empty.
  Processor(Connect connect, std::uint64_t seed, HandlerWatch watch = {},
            LaneSession::AboutToClean about_to_clean = {})
      : session_(std::move(connect), std::move(about_to_clean)),
        watch_(std::move(watch)),
        random_(seed) {}

  // Processes the message once, and tells in the Outcome what happened. If it is settled, its facts
  // are committed.
  // Throws: nothing of the handler's or PostgreSQL's.
  // Blocks: as long as the handler, plus PostgreSQL's answers (bounded by its timeouts).
  //
  // `next`: called at most once, when the handler has run. It returns the message for which the
  // caller calls process() next, or nothing. The round trip that commits this message also claims
  // the key of that one, which saves a round trip. If the caller does not go on with that message
  // at once, it calls abandon().
  Outcome process(const Task& task, Handler& handler, const Next& next = {});

  // Gives up a key that was claimed for the next message. Throws: nothing. Blocks: one round trip.
  void abandon() noexcept { next_claim_.reset(); }

  // Processes messages of one route in as few transactions as their outcomes allow. A message that
  // stops the others (a failure, a drifted or taken-over key, a dead letter) runs alone, in its
  // place. Each message has the outcome that it would have one by one. But handlers in one
  // transaction share session settings, now() and locks. A route with `batch` opts into that.
  // Precondition: all of one route; not cautious.
  std::vector<Outcome> process(std::span<const Job> jobs);

  // How many messages a transaction should have now.
  std::size_t batch_limit() const { return batch_limit_.value(); }

  // Whether PostgreSQL answers. Makes the session if it is gone, and withdraws the announcement of
  // a cautious run. If not, `why` tells the reason.
  // Blocks: at most the connect timeout.
  bool reachable(std::string& why) { return session_.is_reachable(why); }

 private:
  // `in_doubt`: a transaction with it may have been committed. If that was a batch's transaction,
  // the task is older and does not show it.
  Outcome process(const Task& task, bool in_doubt, Handler& handler, const Next& next);
  Outcome process_once(Attempt& attempt, Handler& handler, const Next& next);
  std::optional<Outcome> announce(Attempt& attempt);
  Outcome skip_or_run(Attempt& attempt, Handler& handler, const Next& next);
  Outcome derive_and_run(Attempt& attempt, Handler& handler, const Next& next);
  bool is_known_duplicate(const Attempt& attempt, const store::ClaimRequest& request,
                          const Handler& handler);
  Outcome run(Attempt& attempt, Handler& handler, const Next& next);
  Outcome book(Attempt& attempt, const store::ClaimRequest& request, Handler& handler,
               const Next& next);
  Outcome run_claimed(Attempt& attempt, std::unique_ptr<store::Transaction> opened,
                      const store::ClaimRequest& request, const std::string& nonce,
                      Handler& handler, const Next& next);
  Outcome run_duplicate(Attempt& attempt, const store::ClaimRequest& request,
                        const std::string& nonce, store::Transaction& transaction,
                        Handler& handler);
  Outcome run_alone(const Job& job, const std::optional<Thrown>& failed_run, bool in_doubt);
  Outcome count_run_of_batch(const Job& job, const Thrown& thrown, bool in_doubt);

  LaneSession session_;
  HandlerWatch watch_;
  BatchLimit batch_limit_;
  std::optional<NextClaim> next_claim_;  // after session_, which it uses
  int duplicates_in_a_row_ = 0;
  std::minstd_rand random_;
};

}  // namespace hapax::flow
