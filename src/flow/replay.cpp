#include "flow/replay.hpp"

#include <algorithm>

#include "flow/crash_point.hpp"
#include "flow/lent_context.hpp"
#include "flow/processor.hpp"
#include "flow/verdicts.hpp"

namespace hapax::flow {
namespace {

using store::FailureClass;
using store::Phase;
using What = store::ReplayNote::What;

constexpr std::size_t kMaxRemembered = 1000;  // replays whose lost connections are counted

store::ReplayNote put_back(std::chrono::milliseconds wait, const store::Fault& fault = {}) {
  return {What::put_back, fault.text, fault.sqlstate, wait};
}

}  // namespace

const char* name_of(Replayed::Result result) {
  switch (result) {
    case Replayed::Result::nothing: return "nothing";
    case Replayed::Result::completed: return "completed";
    case Replayed::Result::refused: return "refused";
    case Replayed::Result::failed: return "failed";
    case Replayed::Result::later: return "later";
    case Replayed::Result::outage: return "outage";
  }
  return "unknown";
}

Replayer::Replayer(Setup setup) : setup_(std::move(setup)), random_(setup_.seed) {
  for (const auto& [route, handler] : setup_.routes) topics_.push_back(route->topic);
}

Replayed Replayer::run_next() {
  Replayed away{.result = Replayed::Result::outage};
  if (!reachable(away.detail)) return away;
  std::optional<Claimed> claimed;
  try {
    pay();
    claimed = store::claim_replay(*session_, setup_.group, topics_, setup_.worker, setup_.lease);
  } catch (const store::DatabaseError& error) {
    drop_session();
    away.detail = error.what();
    away.sqlstate = error.sqlstate();
    return away;
  }
  return claimed ? run_claimed(*claimed) : Replayed();
}

std::optional<std::size_t> Replayer::count_open() {
  std::string why;
  try {
    if (reachable(why)) return store::count_open_replays(*session_, setup_.group);
  } catch (const store::DatabaseError&) {
    drop_session();  // the next turn says why
  }
  return std::nullopt;
}

Replayed Replayer::run_claimed(const Claimed& claimed) {
  using End = Replayed::Result;
  Replayed replayed{End::completed, claimed.id, claimed.dead_letter, claimed.topic};
  const auto& [route, handler] = setup_.routes[static_cast<std::size_t>(
      std::ranges::find(topics_, claimed.topic) - topics_.begin())];
  std::optional<Note> note;
  if (claimed.abandoned && claimed.runs > route->retry.max_crashes) {
    note = Note{What::failed, "crashed: it was begun " + std::to_string(claimed.runs - 1) +
                                  " times, and the worker process did not survive the last one"};
  } else {
    try {
      note = run(claimed, *route, *handler);
    } catch (...) {
      note = failed(claimed, *route, std::current_exception());
    }
    has_new_session_ = false;
    if (setup_.running) setup_.running(nullptr, {});
    clean_session();
  }
  if (!note) {
    lost_.erase(claimed.id);
    agains_.erase(claimed.id);
    return replayed;
  }
  replayed.result = note->what == What::refused  ? End::refused
                    : note->what == What::failed ? End::failed
                                                 : End::later;
  replayed.detail = note->text;
  replayed.sqlstate = note->sqlstate;
  replayed.halted = note->halt.has_value();
  if (replayed.result != End::later) {
    lost_.erase(claimed.id);
    agains_.erase(claimed.id);
  }
  owed_.emplace(claimed, std::move(*note));
  std::string why;
  try {
    if (reachable(why)) pay();
  } catch (const store::DatabaseError&) {
    drop_session();
  }
  // It is told once PostgreSQL knows it; what is the matter now says the next turn.
  if (owed_) return {.result = End::outage};
  return replayed;
}

std::optional<store::ReplayNote> Replayer::run(const Claimed& claimed, const Route& route,
                                               Handler& handler) {
  phase_ = Phase::claim;
  store::Transaction transaction(*session_);
  const auto letter = store::lock_replay(transaction, claimed);
  if (!letter) return put_back({});  // another's by now, so this changes nothing
  if (letter->discarded) return Note{What::refused, "the dead letter was ended meanwhile"};
  partition_ = letter->source.partition;
  generation_ = letter->source.generation;
  std::vector<Header> headers;
  for (const auto& [name, value] : letter->headers) headers.push_back({name, value});
  const Message message({.coordinates = {letter->source.topic, partition_, letter->source.offset},
                         .timestamp_ms = letter->timestamp_ms,
                         .timestamp_type = letter->timestamp_type,
                         .key = letter->record_key,
                         .payload = letter->payload,
                         .headers = headers});
  const key::Derived derived = key::identify(route.key, message, generation_);
  if (const auto* none = std::get_if<key::Refusal>(&derived))
    return Note{What::refused, none->reason + ": " + none->detail};
  if (std::holds_alternative<key::SkippedTombstone>(derived))
    return Note{What::refused, "the route skips tombstones (a null payload)"};
  const key::Identity& identity = std::get<key::Identity>(derived);
  const store::ClaimRequest request{identity, route.key.scope, letter->source, route.retention};
  const store::Claim claim = store::claim(transaction, request);
  if (auto why = refusal(claimed, route, *letter, request, claim, transaction))
    return Note{What::refused, std::move(*why)};
  crash_point("replay_claimed");

  phase_ = Phase::handler;
  LentContext context(transaction, route.max_result_bytes);
  if (setup_.running) setup_.running(&route, letter->source);
  try {
    handler.handle(message, context);
  } catch (...) {
    store::refuse_ended(transaction, claim.nonce);
    throw;
  }
  crash_point("replay_handled");

  phase_ = transaction.has_pending() ? Phase::handler : Phase::complete;
  store::add_completed(transaction, claimed);
  store::complete(transaction, request, claim.nonce, context.stored_result());
  crash_point("replay_committed");
  return std::nullopt;
}

// The key rules of a replay: why it must not run; nothing where the key is ours.
std::optional<std::string> Replayer::refusal(const Claimed& claimed, const Route& route,
                                             const store::ReplayedLetter& letter,
                                             const store::ClaimRequest& request,
                                             const store::Claim& claim,
                                             store::Transaction& transaction) {
  const key::Identity& identity = request.identity;
  const bool same = letter.key == identity.key && letter.tenant == identity.tenant;
  const auto keys_are_kept = [&] {
    return store::keys_are_kept(transaction, claimed, request.scope, route.retention);
  };
  if (letter.scope != request.scope)
    return "it was given up on in scope \"" + letter.scope + "\", and the route's is \"" +
           request.scope + "\" now: what happened to its operation since cannot be told";
  if (letter.key && !same && !letter.edited)
    return "the route derives another key from it now (\"" + identity.key + "\", it was \"" +
           *letter.key + "\"): what happened to its operation since cannot be told";
  if (!claim.holder) {
    if (letter.key && same)
      return "its key is not known any more (routes[].retention): whether the operation was "
             "completed meanwhile cannot be told";
    if (keys_are_kept()) return std::nullopt;
    return "it is older than routes[].retention, or than a key that was forgotten, or was skipped "
           "as `unknown_below_highest`: whether the operation was completed since, and its key "
           "forgotten, cannot be told";
  }
  if (claim.holder->status == "completed")
    return "the operation was completed meanwhile by " + name_of(*claim.holder);
  if (claim.holder->status == "started")
    return "the key is `started` by " + name_of(*claim.holder) +
           ", which no worker of this mode leaves behind";
  if (claim.holder->status == "failed" && !claim.holder->is(request.source) && !keys_are_kept())
    return "its key failed since for " + name_of(*claim.holder) +
           ", and it is older than routes[].retention, or than a key that was forgotten, or was "
           "skipped as `unknown_below_highest`: whether the operation was completed before that "
           "cannot be told";
  if (store::take_over(transaction, request, *claim.holder) != store::TakeOver::ours)
    throw store::DatabaseError(
        {store::Fault::Kind::sql, "55P03", "another transaction took the key at this moment"});
  return std::nullopt;
}

// What a failure means: as in Processor, but a replay that cannot go on fails, and halts nobody.
store::ReplayNote Replayer::failed(const Claimed& claimed, const Route& route,
                                   const std::exception_ptr& error) {
  if (phase_ == Phase::handler) {
    try {
      std::rethrow_exception(error);
    } catch (const Reject& reject) {
      return {What::failed, "rejected: " + store::text_of(reject)};
    } catch (const Retry& retry) {
      return count_run(claimed, route, {store::Fault::Kind::other, "", store::text_of(retry)},
                       retry.after());
    } catch (...) {
      // PostgreSQL's or the handler's own: the table says.
    }
  }
  const store::Fault fault = store::fault_of(error);
  switch (store::classify(phase_, fault)) {
    case FailureClass::again: return again(claimed, route, fault);
    case FailureClass::busy: return put_back(kKeyHeldWait, fault);
    case FailureClass::again_reconnected: drop_session(); return again(claimed, route, fault);
    case FailureClass::in_doubt:
    case FailureClass::outage: return lost_connection(claimed, route, fault);
    case FailureClass::attempt:
    case FailureClass::refused:
      if (!store::may_be_stale(fault) || has_new_session_)
        return count_run(claimed, route, fault, std::nullopt);
      drop_session();
      return put_back({}, fault);
    case FailureClass::transaction_ended: drop_session(); return ended_transaction(route, fault);
    case FailureClass::halt: break;
  }
  drop_session();
  return {What::failed, "unexpected_error: " + fault.text, fault.sqlstate};
}

// Not counted, as often as in Processor; then it counts as a failed run.
store::ReplayNote Replayer::again(const Claimed& claimed, const Route& route,
                                  const store::Fault& fault) {
  if (phase_ == Phase::claim) return put_back(kKeyHeldWait, fault);
  if (agains_.size() >= kMaxRemembered) agains_.clear();
  if (++agains_[claimed.id] <= kMaxAgains) return put_back(kKeyHeldWait, fault);
  agains_.erase(claimed.id);
  return count_run(claimed, route, fault, std::nullopt);
}

// An outage counts nothing, but one that the handler makes itself does; see Processor. In doubt
// whether it committed, the row tells: putting it back does nothing to one that ended.
store::ReplayNote Replayer::lost_connection(const Claimed& claimed, const Route& route,
                                            const store::Fault& fault) {
  drop_session();
  int lost = 0;
  if (phase_ != Phase::claim) {
    if (lost_.size() >= kMaxRemembered) lost_.clear();
    lost = ++lost_[claimed.id];
  }
  std::string why;
  const bool handlers_own =
      phase_ == Phase::handler &&
      (fault.sqlstate.empty() || store::is_of_a_transaction_that_took_long(fault));
  if ((handlers_own || lost >= kMaxOutages) && !store::is_the_servers(fault) && reachable(why))
    return count_run(claimed, route, fault, std::nullopt);
  return put_back(kKeyHeldWait, fault);
}

store::ReplayNote Replayer::count_run(const Claimed& claimed, const Route& route,
                                      const store::Fault& fault,
                                      std::optional<std::chrono::milliseconds> after) {
  if (claimed.runs >= route.retry.max_attempts)
    return {What::failed, "attempts_exhausted: " + fault.text, fault.sqlstate};
  std::uniform_real_distribution<double> jitter(0.0, 1.0);
  const auto wait =
      std::clamp(after.value_or(route.retry.wait(claimed.runs, jitter(random_))),
                 std::chrono::milliseconds(0), std::chrono::milliseconds(kLongestRetryWait));
  return {What::tried, fault.text, fault.sqlstate, wait};
}

// Part of the handler's effect may stand alone: it is not run again, and neither is anything else
// of this route until somebody has looked.
store::ReplayNote Replayer::ended_transaction(const Route& route, const store::Fault& fault) const {
  const std::string text =
      "handler \"" + route.handler.name +
      "\" ended the transaction it was lent for a replay (COMMIT, ROLLBACK, SET CONSTRAINTS or "
      "RESET ALL); part of its effect may stand alone: " +
      fault.text;
  // Without an offset: there is no message in Kafka to skip.
  store::Halt halt{
      0,    route.topic, partition_,   true, generation_, {}, "handler_ended_transaction",
      text, {},          setup_.worker};
  return {What::failed, "handler_ended_transaction: " + text, fault.sqlstate, {}, std::move(halt)};
}

void Replayer::pay() {
  if (!owed_) return;
  store::write_note(*session_, owed_->first, owed_->second, setup_.worker, setup_.group);
  owed_.reset();
}

bool Replayer::reachable(std::string& why) {
  if (session_) return true;
  try {
    session_.emplace(setup_.connect());
    has_new_session_ = true;
    if (!store::read_store(*session_).copied) return true;
    drop_session();
    why = "the database is a copy (store_copied)";
    return false;
  } catch (const store::DatabaseError& error) {
    why = error.what();
    return false;
  }
}

void Replayer::drop_session() { session_.reset(); }

// The next one finds the session as if this one had never been there.
void Replayer::clean_session() {
  try {
    if (session_ && !session_->clean()) drop_session();
  } catch (const store::DatabaseError&) {
    drop_session();
  }
}

}  // namespace hapax::flow
