// The calls of one lane, one at a time: the worker's own policy and statements, without its
// threads.
//
// Thread safety: none; as the lane.
#pragma once

#include <memory>
#include <optional>
#include <random>

#include "flow/attempt.hpp"
#include "flow/lane_session.hpp"
#include "flow/outcome.hpp"
#include "flow/task.hpp"
#include "hapax/outside.hpp"
#include "outside/policy.hpp"
#include "outside/steps.hpp"
#include "store/outside/calls.hpp"
#include "testing/route.hpp"

namespace hapax::testing {

// What goes wrong with the next call, once.
enum class CallFault {
  dies_before,   // the process: the key is taken, and nothing was sent
  dies_after,    // the process: the other side has it, and PostgreSQL knows of no answer
  dies_kept,     // the process: the answer is committed, and not booked
  dies_in_step,  // the process: the other side has the call's first step, and it is not kept
  dies_between,  // the process: the answer of the call's first step is kept
  loses_answer,
  cannot_tell,  // what reconcile finds, at first
};

// The process is dead: the harness goes on with another one.
struct Died {};

class Caller {
 public:
  // The lease of a worker in the kit. Time passes by pass_time() only.
  static constexpr std::chrono::seconds kLease{30};

  // Throws: what on_start throws.
  Caller(const TestedRoute& route, flow::LaneSession::Connect connect);

  // What a worker does with a message whose key is to be taken. Nothing: `answered` is to be
  // booked. Throws: Died, as armed; DatabaseError; std::runtime_error if PostgreSQL is away.
  std::optional<flow::Outcome> call(const flow::Task& task, flow::Answered& answered);

  void arm(std::optional<CallFault> fault) { fault_ = fault; }
  int calls() const { return calls_; }  // of the handler's `call`

  int steps() const { return steps_; }  // that were kept

 private:
  class SteppingKeeper;
  void hold_lease();
  outside::Ended make(const flow::Attempt& attempt, std::int64_t token, outside::Step step);
  bool happens(CallFault fault);

  std::unique_ptr<OutsideHandler> handler_;
  flow::LaneSession session_;
  std::minstd_rand random_;
  store::HolderId holder_ = 0;
  std::optional<CallFault> fault_;
  int calls_ = 0;
  int steps_ = 0;
};

}  // namespace hapax::testing
