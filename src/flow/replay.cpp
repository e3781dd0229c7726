#include "flow/replay.hpp"

#include <algorithm>

#include "flow/booking.hpp"
#include "flow/crash_point.hpp"
#include "flow/lent_context.hpp"
#include "flow/replay_rules.hpp"
#include "flow/replayed_message.hpp"
#include "flow/verdicts.hpp"
#include "key/identity.hpp"
#include "payload/reader.hpp"
#include "store/message/claim.hpp"
#include "store/outside/answer_claims.hpp"
#include "store/outside/calls.hpp"
#include "store/worker/checkpoints.hpp"

namespace hapax::flow {
namespace {

using store::Phase;
using What = store::ReplayNote::What;
using State = payload::Reading::State;

constexpr std::size_t kMaxRemembered = 1000;  // replays whose uncounted runs are known

// The time for a question to the registry, behind the questions of all lanes. If the worker dies
// meanwhile, another worker claims the replay so much later.
constexpr std::chrono::seconds kAsking{120};

// Such a call goes on, even if a later schema refuses its message.
bool has_begun_call(const Route& route, const store::ClaimRequest& request,
                    store::Transaction& transaction) {
  if (!route.outside) return false;
  const auto holder = store::read_holder(transaction, request);
  return holder && store::is_begun_call(*holder);
}

store::ReplayNote put_back(std::chrono::milliseconds wait, const store::Fault& fault = {}) {
  return {.what = What::put_back, .text = fault.text, .sqlstate = fault.sqlstate, .wait = wait};
}

// A copy must not run what the original runs.
LaneSession::Connect to_the_original(LaneSession::Connect connect) {
  return [connect = std::move(connect)] {
    store::Session session = connect();
    if (store::read_store(session).copied)
      throw store::DatabaseError(
          {store::Fault::Kind::connection, "", "the database is a copy (store_copied)"});
    return session;
  };
}

[[noreturn]] void throw_taken() {
  throw store::DatabaseError(
      {store::Fault::Kind::sql, "55P03", "another transaction took the key at this moment"});
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

Replayer::Replayer(Setup setup)
    : setup_(std::move(setup)),
      session_(to_the_original(setup_.connect)),
      random_(setup_.seed),
      spans_(setup_.tracer) {
  for (const auto& [route, handler] : setup_.routes) topics_.push_back(route->topic);
}

Replayed Replayer::run_next() {
  Replayed away{.result = Replayed::Result::outage};
  if (!owed_ && session_.is_open() && session_.age() >= setup_.session_lasts) session_.drop();
  if (!session_.is_reachable(away.detail)) return away;
  std::optional<Claimed> claimed;
  try {
    pay();
    claimed = store::claim_replay(*session_, setup_.group, topics_, setup_.worker, setup_.lease);
  } catch (const store::DatabaseError& error) {
    session_.drop();
    away.detail = error.what();
    away.sqlstate = error.sqlstate();
    return away;
  }
  return claimed ? run_claimed(*claimed) : Replayed();
}

std::optional<std::size_t> Replayer::count_open() {
  std::string why;
  try {
    if (session_.is_reachable(why)) return store::count_open_replays(*session_, setup_.group);
  } catch (const store::DatabaseError&) {
    session_.drop();  // the next turn reports the cause
  }
  return std::nullopt;
}

Replayed Replayer::run_claimed(const Claimed& claimed) {
  using End = Replayed::Result;
  Replayed replayed{.result = End::completed,
                    .replay = claimed.id,
                    .dead_letter = claimed.dead_letter,
                    .topic = claimed.topic};
  const auto& [route, handler] = setup_.routes[static_cast<std::size_t>(
      std::ranges::find(topics_, claimed.topic) - topics_.begin())];
  std::optional<Note> note;
  std::string crashed;
  if (claimed.abandoned && claimed.runs > route->retry.max_crashes)
    crashed = "crashed: it was begun " + std::to_string(claimed.runs - 1) +
              " times, and the worker process did not survive the last one";
  if (!crashed.empty() && !route->outside) {
    note = Note{What::failed, std::move(crashed)};
  } else {
    Run current{.claimed = claimed,
                .route = *route,
                .handler = *handler,
                .session_was_new = session_.number() != ran_in_,
                .crashed = std::move(crashed)};  // its key shows whether it was called
    note = run_to_end(current);
    replayed.trace_id = current.trace_id;
    replayed.awaits_schema = note && note->what == What::put_back && current.asked;
  }
  if (!note) {
    uncounted_.erase(claimed.id);
    return replayed;
  }
  replayed.result = note->what == What::refused  ? End::refused
                    : note->what == What::failed ? End::failed
                                                 : End::later;
  replayed.detail = note->text;
  replayed.sqlstate = note->sqlstate;
  replayed.halted = note->halt.has_value();
  if (replayed.result != End::later) uncounted_.erase(claimed.id);
  owed_.emplace(claimed, std::move(*note));
  std::string why;
  try {
    if (session_.is_reachable(why)) pay();
  } catch (const store::DatabaseError&) {
    session_.drop();
  }
  // The caller learns of the replay once PostgreSQL knows its end. The next turn reports the
  // outage.
  if (owed_) return {.result = End::outage};
  return replayed;
}

std::optional<store::ReplayNote> Replayer::run_to_end(Run& current) {
  std::optional<Note> note;
  try {
    note = run(current);
  } catch (...) {
    note = failed(current, std::current_exception());
  }
  try {
    if (note && note->what == What::failed && current.answered) end_booking(current, note->text);
  } catch (const store::DatabaseError&) {
    session_.drop();  // the key stays `answered`, and its letter open
  }
  end_span(note);
  ran_in_ = session_.number();
  if (setup_.running) setup_.running(nullptr, {});
  session_.clean();
  return note;
}

bool Replayer::ran_again(const Claimed& claimed) const {
  const auto found = uncounted_.find(claimed.id);
  return found != uncounted_.end() && found->second.agains > 0;
}

// Why it must not run; nothing if the key is ours, under this nonce.
std::optional<std::string> Replayer::claim(const Run& current, const store::ReplayedLetter& letter,
                                           const store::ClaimRequest& request,
                                           store::Transaction& transaction, std::string& nonce) {
  if (current.answered) {
    store::AnswerClaim claim = store::claim_answered(transaction, request, current.answered->token);
    if (claim.lost) throw_taken();
    nonce = std::move(claim.nonce);
    return std::nullopt;
  }
  const bool by_position = key::is_by_position(current.route.key);
  if (by_position) store::share_partition(transaction, letter.source);
  store::Claim claim = store::claim(transaction, request);
  if (auto why =
          refusal(current.claimed, current.route, letter, request, claim.holder, transaction))
    return why;
  if (claim.holder &&
      store::take_over(transaction, request, *claim.holder) != store::TakeOver::ours)
    throw_taken();
  if (by_position) store::settle_replayed(transaction, letter.source);
  nonce = std::move(claim.nonce);
  return std::nullopt;
}

std::optional<store::ReplayNote> Replayer::ask_registry(Run& current,
                                                        store::Transaction& transaction,
                                                        const Message& original) {
  transaction.rollback();  // the registry may take seconds
  store::extend_replay(*session_, current.claimed, kAsking);
  const auto reading = current.route.payload->read(original);
  return reading.is_readable() ? run(current) : unread(reading);
}

std::optional<store::ReplayNote> Replayer::run(Run& current) {
  const Route& route = current.route;
  store::Transaction transaction(*session_);
  const auto letter = store::lock_replay(transaction, current.claimed);
  if (!letter) return put_back({});  // another worker has it now, so this changes nothing
  if (letter->discarded) return Note{What::refused, "the dead letter was ended meanwhile"};
  if (letter->without_bytes && !letter->edited)
    return Note{What::refused, without_bytes(letter->source)};
  current.partition = letter->source.partition;
  current.generation = letter->source.generation;
  std::vector<Header> headers;
  const Message original = original_of(*letter, headers);
  const auto read = payload::read_message(route.payload.get(), original, false);
  if (read && read->reading.state == State::away && !std::exchange(current.asked, true))
    return ask_registry(current, transaction, original);
  if (read && !read->reading.is_readable()) return unread(read->reading);
  const Message& message = read ? read->message : original;
  const key::Derived derived = key::identify(route.key, message, current.generation);
  if (auto note = refused_message(derived, nullptr, message)) return note;
  const key::Identity& identity = std::get<key::Identity>(derived);
  const store::ClaimRequest request{.identity = identity,
                                    .scope = route.key.scope,
                                    .source = letter->source,
                                    .retention = route.retention,
                                    .prepares_late = ran_again(current.claimed)};
  if (auto note = put_back_for_caller(current.claimed, route, request, transaction)) return note;
  if (!current.answered && !has_begun_call(route, request, transaction))
    if (auto note = refused_message(derived, route.payload.get(), message)) return note;
  begin_span(current, message);
  if (route.outside && !current.answered) {
    if (auto why =
            refusal_of_other_call(current.claimed, route, *letter, request, message, transaction))
      return Note{What::refused, std::move(*why)};
    if (auto why = refusal(current.claimed, route, *letter, request,
                           store::read_holder(transaction, request), transaction))
      return Note{What::refused, std::move(*why)};
    transaction.rollback();
    current.identity = identity;
    current.source = letter->source;
    if (auto note = call(current, message)) return note;
    return run(current);
  }
  return take_effect(current, *letter, request, message, transaction);
}

std::optional<store::ReplayNote> Replayer::take_effect(Run& current,
                                                       const store::ReplayedLetter& letter,
                                                       const store::ClaimRequest& request,
                                                       const Message& message,
                                                       store::Transaction& transaction) {
  const Route& route = current.route;
  std::string nonce;
  if (auto why = claim(current, letter, request, transaction, nonce))
    return Note{What::refused, std::move(*why)};
  crash_point("replay_claimed");

  current.phase = Phase::handler;
  const traces::Carried carried(message, current.trace);
  Publisher publisher(route.publishing.get(), route.key.scope, request.identity, carried,
                      letter.source);
  if (!request.prepares_late) publisher.prepare(*session_);
  LentContext context(transaction, carried, route.max_result_bytes, &publisher, &request.identity,
                      key::is_by_position(route.key));
  if (setup_.running) setup_.running(&route, letter.source);
  try {
    handle(current.handler, message, current.answered ? &current.answered->answer : nullptr,
           context);
  } catch (...) {
    store::refuse_ended(transaction, nonce);
    throw;
  }
  crash_point("replay_handled");

  current.phase = transaction.has_pending() ? Phase::handler : Phase::complete;
  store::add_completed(transaction, current.claimed);
  store::add_published(transaction, publisher.records());
  store::complete(transaction, request, nonce, context.stored_result());
  publisher.committed();
  crash_point("replay_committed");
  return std::nullopt;
}

// Does what the policy decides. A replay that cannot go on fails, and halts no partition.
store::ReplayNote Replayer::failed(const Run& current, const std::exception_ptr& error) {
  const Thrown thrown = thrown_by(error);
  if (uncounted_.size() >= kMaxRemembered) uncounted_.clear();
  Uncounted& before = uncounted_[current.claimed.id];
  const Decision decision = decide({.of = Failure::Of::replay,
                                    .phase = current.phase,
                                    .fault = thrown.fault,
                                    .thrown = thrown.what,
                                    .session_was_new = current.session_was_new,
                                    .agains = before.agains,
                                    .outages = before.outages});
  const store::Fault fault = thrown.kept();
  switch (session_.follow(decision)) {
    case Action::count: before.agains = 0; return count_run(current, fault, thrown.after);
    case Action::give_up:
      return {What::failed, std::string(decision.reason) + ": " + fault.text, fault.sqlstate};
    case Action::run_on_new_session: return put_back({}, fault);
    default: break;
  }
  before.agains = decision.result == Result::again ? before.agains + 1 : 0;
  if (decision.lost_in_handler) ++before.outages;
  if (decision.result == Result::halt_route) return ended_transaction(current, fault);
  if (is_halt(decision.result))
    return {What::failed, std::string(decision.reason) + ": " + fault.text, fault.sqlstate};
  return put_back(kKeyHeldWait, fault);
}

store::ReplayNote Replayer::count_run(const Run& current, const store::Fault& fault,
                                      std::optional<std::chrono::milliseconds> after) {
  const RetryPolicy& retry = current.route.retry;
  if (current.claimed.runs >= retry.max_attempts)
    return {What::failed, "attempts_exhausted: " + fault.text, fault.sqlstate};
  std::uniform_real_distribution<double> jitter(0.0, 1.0);
  return {.what = What::tried,
          .text = fault.text,
          .sqlstate = fault.sqlstate,
          .wait = retry.wait(current.claimed.runs, jitter(random_), after)};
}

// Part of the handler's effect may be committed alone. So the replay does not run again, and no
// message of this route runs until an operator has looked.
store::ReplayNote Replayer::ended_transaction(const Run& current, const store::Fault& fault) const {
  const std::string text = "handler \"" + current.route.handler.name +
                           "\" ended hapax's transaction in a replay (COMMIT, ROLLBACK, SET "
                           "CONSTRAINTS or RESET ALL), or left a stream or pipeline of libpqxx "
                           "open. Part of its effect may stand alone: " +
                           fault.text;
  // Without an offset: there is no message in Kafka to skip.
  return {.what = What::failed,
          .text = "handler_ended_transaction: " + text,
          .sqlstate = fault.sqlstate,
          .halt = store::Halt{.topic = current.route.topic,
                              .partition = current.partition,
                              .whole_route = true,
                              .generation = current.generation,
                              .reason = "handler_ended_transaction",
                              .detail = text,
                              .halted_by = setup_.worker}};
}

void Replayer::pay() {
  if (!owed_) return;
  store::write_note(*session_, owed_->first, owed_->second, setup_.worker, setup_.group);
  owed_.reset();
}

}  // namespace hapax::flow
