// Several messages of a batch in one transaction: one claim for all their keys, the handlers in
// order, one seal, one COMMIT. All or nothing.
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
};

// One try of one segment; lives as long as that.
class Segment {
 public:
  using Identities = std::span<const std::optional<key::Identity>>;

  // All outlive it, and are as many. Precondition: each job has its identity.
  struct Setup {
    LaneSession& session;
    const HandlerWatch& watch;
    bool takes_turns;  // with all other batches
    std::span<const Job> jobs;
    Identities identities;
    std::span<Outcome> outcomes;
  };
  explicit Segment(Setup setup) : setup_(setup) {}

  // Sets the outcomes, to Result::waits if nothing took effect.
  // Throws: nothing of the handler's or PostgreSQL's.
  Tried run();

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
  Effects run_handlers(std::span<const std::optional<std::size_t>> ours,
                       std::span<const store::ClaimRequest> requests, const std::string& nonce,
                       store::Transaction& transaction);
  Tried failed(const std::exception_ptr& error);
  std::string why_halted(const store::Fault& fault) const;

  Setup setup_;
  store::Phase phase_ = store::Phase::claim;  // which says what an exception means
  std::optional<std::size_t> running_ = {};   // whose handler runs
  bool sent_commit_ = false;
};

}  // namespace hapax::flow
