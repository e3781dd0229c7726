#include "flow/judge.hpp"

#include <nlohmann/json.hpp>

#include "flow/verdicts.hpp"
#include "key/sha256.hpp"
#include "store/outside/calls.hpp"

namespace hapax::flow {
namespace {

// Keeps the message as a dead letter that names the holder of its key, which stays as it is.
Outcome keep_beside(Attempt& attempt, const store::KeyHolder& holder, Outcome verdict,
                    store::Transaction& transaction) {
  store::DeadLetter letter = letter_of(attempt, verdict);
  letter.other = nlohmann::json{{"group", holder.group},
                                {"topic", holder.topic},
                                {"generation", holder.generation},
                                {"partition", holder.partition},
                                {"offset", holder.offset},
                                {"fingerprint", key::hex(holder.fingerprint.digest)},
                                {"fingerprint_rule", holder.fingerprint.rule}}
                     .dump();
  attempt.phase = store::Phase::account;
  const auto id = store::insert_dead_letter(transaction, letter);
  transaction.commit();
  if (!id) return redelivered(attempt.task.attempts);
  verdict.dead_letter = *id;
  return verdict;
}

Outcome drifted(Attempt& attempt, const store::KeyHolder& holder, const std::string& what,
                store::Transaction& transaction) {
  return keep_beside(
      attempt, holder,
      gave_up("payload_drift", "the key " + what + " " + name_of(holder) + " with another payload",
              attempt.task.attempts),
      transaction);
}

// The key shows nothing about this message, so its coordinates decide. It may be a dead letter
// already, or one that hapax must remember and does not. Nothing: it may run.
std::optional<Outcome> judge_coordinates(const Task& task, const store::Source& source,
                                         store::Transaction& transaction) {
  const store::Known known =
      store::known_coordinates(transaction, source, task.route.key.scope, task.route.retention);
  if (known.dead_letter) return redelivered(task.attempts);
  // By position no key would tell if it was completed since.
  const bool unfinished = known.attempted && !key::is_by_position(task.route.key);
  if (unfinished || task.message.offset() >= task.guard_below) return std::nullopt;
  return halt(Result::halt_partition, "unknown_below_highest",
              "offset " + std::to_string(task.message.offset()) +
                  " is below the highest checkpoint ever reached (" +
                  std::to_string(task.guard_below) +
                  "), and neither its key nor its coordinates are known any more: running it "
                  "could double an effect that retention has forgotten");
}

Outcome judge_completed(Attempt& attempt, const store::ClaimRequest& request,
                        const store::KeyHolder& holder, store::Transaction& transaction) {
  if (is_same(attempt.task, request, holder)) return Outcome::of(Result::duplicate);
  return drifted(attempt, holder, "was completed by", transaction);
}

// This very message settled the position before.
Outcome settled_before(const Task& task, const store::Source& source,
                       store::Transaction& transaction) {
  const store::Known known =
      store::known_coordinates(transaction, source, task.route.key.scope, task.route.retention);
  return known.dead_letter ? redelivered(task.attempts) : Outcome::of(Result::duplicate);
}

// The take compares fingerprints only, so the key needs the one by today's rule.
Outcome to_take(const Attempt& attempt, const store::ClaimRequest& request,
                const store::KeyHolder& holder, store::Transaction& transaction) {
  if (holder.fingerprint.rule != request.identity.fingerprint.rule) {
    transaction.rollback();
    store::renew_fingerprint(*attempt.session, request, holder.fingerprint);
  }
  return to_call("key_started", attempt.task.attempts, kKeyHeldWait);
}

// Its call was given up behind steps that are done. A replay goes on, or another message of it.
Outcome judge_resting(Attempt& attempt, const store::ClaimRequest& request,
                      const store::KeyHolder& holder, store::Rest rest,
                      store::Transaction& transaction) {
  const Task& task = attempt.task;
  if (rest == store::Rest::of_letter || is_copy_of_given_up(task, request, holder, transaction))
    return redelivered(task.attempts);
  if (task.route.outside) return to_take(attempt, request, holder, transaction);
  return keep_beside(attempt, holder,
                     gave_up("outcome_unknown",
                             "the call for " + name_of(holder) +
                                 " was given up behind steps that are done; replay its dead "
                                 "letter, see `hapax outside list`",
                             task.attempts),
                     transaction);
}

// A replay of the message's dead letter has called with an edited payload, so the message does not
// go on with that call.
bool is_edited_call(const Task& task, const store::ClaimRequest& request,
                    const store::KeyHolder& holder, store::Transaction& transaction) {
  return !key::same_payload(task.route.key, task.message, request.identity.fingerprint,
                            holder.fingerprint) &&
         store::known_coordinates(transaction, request.source, task.route.key.scope,
                                  task.route.retention)
             .dead_letter;
}

// The operation has a call to the outside, and is not done. If this is its own message, it takes
// the key over or waits.
Outcome judge_called(Attempt& attempt, const store::ClaimRequest& request,
                     const store::KeyHolder& holder, store::Transaction& transaction) {
  const Task& task = attempt.task;
  if (!is_same(task, request, holder)) return drifted(attempt, holder, "is called by", transaction);
  if (holder.status != "unknown") {
    if (const store::Rest rest = store::rest_of(transaction, request); rest != store::Rest::none)
      return judge_resting(attempt, request, holder, rest, transaction);
    if (task.route.outside)
      return is_edited_call(task, request, holder, transaction)
                 ? redelivered(task.attempts)
                 : to_take(attempt, request, holder, transaction);
    if (holder.topic != task.route.topic || store::is_called(transaction, request))
      return to_call("key_started", task.attempts, kKeyHeldWait);
    return halt(Result::halt_partition, "open_call",
                "an earlier release called to the outside for the operation of " + name_of(holder) +
                    " and has not booked the answer, and this route does not call: start that "
                    "release again, or decide: `hapax outside list`, `hapax outside decide`");
  }
  if (holder.is(request.source)) return redelivered(task.attempts);
  return keep_beside(attempt, holder,
                     gave_up("outcome_unknown",
                             "the outcome is unknown of the call for " + name_of(holder) +
                                 "; see `hapax outside list`",
                             task.attempts),
                     transaction);
}

}  // namespace

std::optional<Outcome> judge(Attempt& attempt, const store::ClaimRequest& request,
                             const store::Claim& claim, store::Transaction& transaction) {
  const Task& task = attempt.task;
  if (claim.fenced) return fenced(task);
  if (!claim.holder) {
    if (!task.may_be_known()) return std::nullopt;
    return judge_coordinates(task, request.source, transaction);
  }
  if (request.by_position) return settled_before(task, request.source, transaction);
  const store::KeyHolder& holder = *claim.holder;
  if (holder.status == "completed") return judge_completed(attempt, request, holder, transaction);
  if (holder.status == "started" || holder.status == "answered" || holder.status == "unknown")
    return judge_called(attempt, request, holder, transaction);
  if (holder.status == "failed" && holder.is(request.source)) return redelivered(task.attempts);
  if (holder.status == "failed" && is_copy_of_given_up(task, request, holder, transaction))
    return redelivered(task.attempts);
  if (holder.status == "failed")  // by another, perhaps after this one
    if (auto decided = judge_coordinates(task, request.source, transaction)) return decided;
  switch (store::take_over(transaction, request, holder)) {
    case store::TakeOver::ours: break;
    case store::TakeOver::lost: return Outcome::of(Result::again);
    case store::TakeOver::fenced: return fenced(task);
  }
  return std::nullopt;
}

bool is_same(const Task& task, const store::ClaimRequest& request, const store::KeyHolder& holder) {
  return holder.is(request.source) ||
         key::same_payload(task.route.key, task.message, request.identity.fingerprint,
                           holder.fingerprint);
}

bool is_copy_of_given_up(const Task& task, const store::ClaimRequest& request,
                         const store::KeyHolder& holder, store::Transaction& transaction) {
  const auto origin = task.message.header("hapax-origin");
  return origin && is_same(task, request, holder) &&
         store::gave_up_on_record(transaction, holder, *origin);
}

}  // namespace hapax::flow
