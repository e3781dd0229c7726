// One request on its way through PostgreSQL (executor.hpp), and how far it has come.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "gate/executor.hpp"
#include "gate/problem.hpp"
#include "gate/request_message.hpp"
#include "key/key_text.hpp"
#include "store/transaction.hpp"

namespace hapax::gate {

struct Run {
  Run(const Request& asked, Handler& by, const ExecutorSetup& of_gate, std::int64_t number)
      : setup(of_gate),
        request(asked),
        handler(by),
        route(setup.routes[asked.route]),
        identity{asked.is_guarded() ? key::encode_key(asked.key) : "",
                 key::encode_key(asked.tenant),
                 asked.is_guarded() ? fingerprint_of(asked) : key::Fingerprint{}},
        hash(SeenKeys::hash_of(asked)),
        message(asked, setup.callers, route.topic, number, identity.fingerprint),
        carried(message.message(), asked.trace ? &*asked.trace : nullptr),
        source{setup.name, route.topic, 0, 0, number},
        publishes_as{setup.outbox_group, route.topic, 0, 0, number},
        waits_for_outcome(setup.operations != nullptr &&
                          setup.operations->is_accepting(asked.route)),
        in_doubt(asked.doubt.has_value()),
        doubt_sqlstate(asked.doubt ? asked.doubt->sqlstate : "") {}

  const ExecutorSetup& setup;
  const Request& request;
  Handler& handler;
  const flow::Route& route;
  const key::Identity identity;
  const std::size_t hash;  // for SeenKeys
  const RequestMessage message;
  const traces::Carried carried;
  const store::Source source;  // its number tells this run from others
  const store::Source publishes_as;
  const bool waits_for_outcome;  // of a worker, from which the key's expiry counts
  store::Phase phase = store::Phase::claim;
  int agains = 0;
  int outages = 0;
  std::chrono::system_clock::time_point began = std::chrono::system_clock::now();
  bool session_was_new = false;
  bool sent_commit = false;          // of this attempt
  bool in_doubt;                     // PostgreSQL's answer does not tell whether it committed
  std::string doubt_sqlstate;        // of that answer; "": there was none
  std::optional<Response> said;      // by a handler that then threw
  std::optional<Response> rejected;  // to be stored instead of running the handler

  // Set if the round trip that committed the request before it has tried to take the key.
  std::unique_ptr<store::Transaction> transaction;
  std::optional<store::TakenKey> taken;

  store::ClaimRequest claim_request() const {
    return {.identity = identity,
            .scope = route.key.scope,
            .source = source,
            .retention = retention(),
            .prepares_late = agains > 0,
            .wait = setup.wait,
            .reads_answer = true};
  }

  std::chrono::seconds retention() const {
    return waits_for_outcome && !rejected ? store::kUntilOutcome : route.retention;
  }

  // Of an answer that this run stores. PostgreSQL counts from the transaction's begin, too.
  std::string expiry() const {
    return expiry_of(std::chrono::floor<std::chrono::seconds>(began) + retention());
  }
  // "" if it is not known yet: it counts from an outcome.
  static std::string expiry_of(std::chrono::sys_seconds when) {
    const auto waits = std::chrono::system_clock::now() + store::kUntilOutcome / 2;
    return when > waits ? "" : http_date(when);
  }
};

}  // namespace hapax::gate
