// One run of one message: what is known of it, and how far it has come. It lives as long as the
// run, on the stack of the lane that makes it.
#pragma once

#include <optional>
#include <random>
#include <utility>

#include "flow/failure_policy.hpp"
#include "flow/lane_session.hpp"
#include "flow/task.hpp"
#include "key/identity.hpp"
#include "store/message/claim.hpp"

namespace hapax::flow {

struct Attempt {
  // Precondition: the lane has not yet opened a session for this run.
  Attempt(const Task& given, LaneSession& lanes, std::minstd_rand& dice,
          std::optional<key::Identity> derived = {})
      : task(given),
        session(lanes),
        random(dice),
        source(given.source()),
        session_was_new(!lanes.is_open()),
        identity(std::move(derived)),
        in_doubt(given.in_doubt) {}
  Attempt(const Attempt&) = delete;  // a claim request refers to it
  Attempt& operator=(const Attempt&) = delete;

  // Precondition: the identity is derived.
  store::ClaimRequest request() const {
    return {.identity = *identity,
            .scope = task.route.key.scope,
            .source = source,
            .retention = task.route.retention,
            .epoch = task.epoch,
            .by_position = key::is_by_position(task.route.key),
            .in_doubt = in_doubt};
  }

  // The bytes of its message, while a dead letter would be written with them.
  std::optional<std::size_t> letter_bytes() const {
    if (!keep_bytes) return std::nullopt;
    return task.message.payload().value_or("").size() + task.message.key().value_or("").size();
  }

  const Task& task;
  LaneSession& session;
  std::minstd_rand& random;  // of the jitter
  const store::Source source;
  bool session_was_new;                      // made for this run: nothing in it can be stale
  std::optional<key::Identity> identity;     // nothing: not derived
  bool in_doubt;                             // a transaction with it may have been committed
  bool sent_commit = false;                  // of this run
  store::Phase phase = store::Phase::claim;  // decides what an exception means
  bool keep_bytes = true;                    // of a dead letter
  bool session_was_stale = false;            // perhaps: run again at once, on a new session
};

}  // namespace hapax::flow
