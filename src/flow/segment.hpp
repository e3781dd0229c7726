// Several messages of a batch in one transaction: one claim for all their keys, the handlers in
// order, one seal, one COMMIT. All or nothing. Of a route that calls, it books several answers.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flow/batch_limit.hpp"
#include "flow/failure_policy.hpp"
#include "flow/lane_session.hpp"
#include "flow/lent_context.hpp"
#include "flow/outcome.hpp"
#include "flow/task.hpp"
#include "key/identity.hpp"
#include "store/message/claim_batch.hpp"
#include "store/message/outbox_insert.hpp"

namespace hapax::flow {

// What came of one try of a segment.
struct Tried {
  enum class Then { done, some_alone, again, halves, given_up };
  Then then = Then::done;
  std::vector<std::size_t> alone = {};      // some_alone: which of the segment
  std::optional<Thrown> failed_run = {};    // some_alone: of the one that failed; it counts
  Outcome verdict = {};                     // given_up: what is true of all of it
  std::optional<std::size_t> lost_in = {};  // given_up: whose handler lost the connection
  bool in_doubt = false;                    // it may have been committed, or may still be
  std::string sqlstate = {};                // of PostgreSQL's error; "": there was none
};

// One try of one segment. The object lives as long as the try.
class Segment {
 public:
  using Identities = std::span<const std::optional<key::Identity>>;

  // Precondition: all outlive the segment, the three spans have one size, and each job has its
  // identity. All jobs have an answer to be booked, or none has.
  struct Setup {
    LaneSession& session;
    const HandlerWatch& watch;
    bool takes_turns;  // with all other batches
    std::span<const Job> jobs;
    Identities identities;
    std::span<Outcome> outcomes;
  };
  explicit Segment(Setup setup) : setup_(setup) {}
  virtual ~Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // Sets the outcomes, to Result::waits if nothing took effect.
  // Throws: nothing of the handler's or PostgreSQL's.
  Tried run();

 protected:
  // What differs between a worker and a gate. The versions here are the worker's. Each may throw.
  virtual std::chrono::seconds retention() const {
    return setup_.jobs.front().task.route.retention;
  }
  // Whether the claim also reads what is stored with keys that others have, for settle().
  virtual bool reads_answers() const { return false; }
  // Whether the job needs no more than that. Then its outcome is Result::duplicate.
  virtual bool settle(std::size_t /*job*/, const store::StoredAnswer& /*stored*/) { return false; }
  // Adds to the claim.
  virtual void begin(store::Transaction& /*transaction*/) {}
  // Adds behind the claim, before the first handler.
  virtual void claimed(store::Transaction& /*transaction*/) {}
  virtual void handle(std::size_t job, store::Transaction& transaction, LentContext& context);
  // The source under which the job publishes records, if `claimed` claimed its key.
  virtual const store::Source& publishes_as(std::size_t /*job*/,
                                            const store::Source& claimed) const {
    return claimed;
  }
  // Adds to the completion. Only results and records are added after it.
  virtual void complete(store::Transaction& /*transaction*/) {}

 private:
  // The first message of each key, in the order in which every process takes locks.
  struct Claims {
    std::vector<std::size_t> jobs = {};
    std::vector<bool> repeated = {};  // whether another message of the key follows
    std::vector<store::Source> sources = {};
    std::vector<store::ClaimRequest> requests = {};
  };
  struct Effects {  // that go out with the completion
    std::vector<std::pair<std::size_t, std::string>> results = {};  // by request
    std::vector<store::Published> published = {};                   // in the order of messages
  };

  // A message that must run alone, because its key is claimed for another one.
  std::optional<std::size_t> collect(Claims& claims) const;
  Tried run_segment();
  store::BatchClaim claim(store::Transaction& transaction, const Claims& claims) const;
  Effects run_handlers(std::span<const std::optional<std::size_t>> ours,
                       std::span<const store::ClaimRequest> requests, const std::string& nonce,
                       store::Transaction& transaction);
  Tried failed(const std::exception_ptr& error);
  std::string why_halted(const store::Fault& fault) const;

  Setup setup_;
  store::Phase phase_ = store::Phase::claim;  // decides what an exception means
  std::optional<std::size_t> running_ = {};   // whose handler runs
  bool sent_commit_ = false;
};

}  // namespace hapax::flow
