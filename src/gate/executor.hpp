// The way of one request through PostgreSQL: claim, handle and complete in one transaction. This
// keeps the promise of the gate. It has no threads and no HTTP library.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "flow/lane_session.hpp"
#include "flow/lent_context.hpp"
#include "flow/route.hpp"
#include "gate/batch_pace.hpp"
#include "gate/callers.hpp"
#include "gate/handler_time.hpp"
#include "gate/operations.hpp"
#include "gate/request.hpp"
#include "gate/seen_keys.hpp"
#include "gate/status.hpp"
#include "hapax/handler.hpp"
#include "store/message/answer.hpp"

namespace hapax::gate {

struct ExecutorSetup {
  flow::LaneSession::Connect connect;
  std::string name;                        // of the gate, as group of its keys
  const std::vector<flow::Route>& routes;  // topic: the path
  const Callers& callers;
  Status& status;
  std::chrono::milliseconds wait;  // for a key that another process has
  bool log_error_text = false;
  const Operations* operations = nullptr;  // null: no route accepts
  std::string outbox_group = {};           // the group whose relay sends the published records
  std::size_t lanes = 1;
  std::chrono::milliseconds batch_time{250};  // see config::Gate
  // How many lanes claim a key at this moment. Shared by all lanes.
  std::shared_ptr<std::atomic<std::size_t>> claiming =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::shared_ptr<SeenKeys> seen = std::make_shared<SeenKeys>();  // shared by all lanes
};

struct Executed {
  Answer answer;
  key::Fingerprint fingerprint;  // of the request
};

// What became of one request of a batch.
struct BatchAnswer {
  std::optional<Executed> executed = {};  // nothing: it runs alone
  // The watch has answered it, so it is not the lane's any more.
  bool is_taken = false;
};

// The request that a lane serves next, and its handler.
struct Following {
  const Request* request;
  Handler* handler;
};
// The request after the one that is executed.
struct Next {
  // Called while a request is committed. Nothing: none waits. Returns the same request until that
  // is executed.
  std::function<std::optional<Following>()> take;
  // Leaves the request to other lanes, because the one before it runs again, which may take long.
  std::function<void()> put_back;
};

struct Run;
struct Ticket;
struct BatchMember;

// Owns one PostgreSQL session, and makes a new one if the old one is gone.
//
// Thread safety: none; each lane has its own.
class Executor {
 public:
  Executor(const ExecutorSetup& setup, std::uint64_t seed);
  ~Executor();

  // Answers the request. If the answer is stored, effect, answer and key are committed. If not,
  // nothing is committed, unless the answer tells the client that this is not known. If the handler
  // was given up meanwhile, nothing is committed, and the answer is not used, because the client
  // has one.
  // The round trip that commits this request also takes the key of the following one. If another
  // process has that key, this answer waits for it, at most 50 ms.
  // Throws: nothing of the handler's or PostgreSQL's.
  // Blocks: as long as the handler, plus PostgreSQL's answers (bounded by its timeouts, but for
  //   deferred triggers at COMMIT).
  Executed execute(const Request& request, Handler& handler, const Next& next);

  // Answers requests of one route in one transaction, as far as their outcomes allow. The others
  // must run alone. Nothing of them is committed, unless the request is in doubt by then.
  // Precondition: all are guarded, no two have one key and tenant.
  // Throws, blocks: as execute().
  std::vector<BatchAnswer> execute_batch(std::span<const std::shared_ptr<Ticket>> tickets,
                                         Handler& handler, BatchPace& pace);

  // The time of the handler that runs, for the watch. Any thread.
  HandlerTime& handler_time() { return time_; }

  // Whether PostgreSQL answers. Also writes that to the status. Blocks: at most the connect
  // timeout.
  bool look();

 private:
  friend class BatchSegment;

  using Clock = std::chrono::steady_clock;

  std::optional<bool> has_deferred();
  std::vector<std::size_t> try_batch(std::span<BatchMember> all, std::vector<std::size_t> left,
                                     Handler& handler, BatchPace& pace,
                                     std::vector<BatchAnswer>& answers);
  std::unique_ptr<Run> begin(const Request& request, Handler& handler);
  std::optional<Answer> attempt(Run& run, const Next& next);
  void handle(Run& run, flow::LentContext& context);
  store::Claim claim(store::Transaction& transaction, store::ClaimRequest request) const;
  Answer handle_claimed(Run& run, std::unique_ptr<store::Transaction> claimed,
                        const store::ClaimRequest& request, const std::string& nonce,
                        const Next& next);
  void complete(std::unique_ptr<store::Transaction> transaction, const store::ClaimRequest& request,
                const std::string& nonce, const std::optional<std::string>& result,
                const Next& next);
  void keep_outcome(const Run& run, store::Transaction& transaction) const;
  bool has_a_key_to_claim(const Request& request) const;
  std::optional<Answer> look_up(const Run& run, const store::ClaimRequest& request);
  Answer answer_with(const Run& run, const store::StoredAnswer& stored) const;
  Answer store_rejection(Run& run, store::Transaction& transaction,
                         const store::ClaimRequest& request, const std::string& nonce);
  Answer unguarded(Run& run);
  std::optional<Answer> answer_again(const Run& run, store::Transaction& transaction,
                                     const store::ClaimRequest& request, const store::Claim& claim);
  std::optional<Answer> after(Run& run, const std::exception_ptr& error);
  Answer outage(const Run& run, const flow::Thrown& thrown);
  Answer in_doubt(const Run& run) const;
  Answer in_part(const Run& run) const;
  Answer failed(const Run& run, const flow::Thrown& thrown) const;

  const ExecutorSetup& setup_;
  flow::LaneSession session_;
  std::mt19937_64 random_;
  HandlerTime time_;
  bool has_deferred_ = false;
  Clock::time_point ask_for_deferred_at_{};
  std::unique_ptr<Run> ahead_;  // of the following request, in a transaction of session_
};

}  // namespace hapax::gate
