#include "gate/executor.hpp"

#include <algorithm>
#include <utility>

#include "flow/outcome.hpp"
#include "gate/problem.hpp"
#include "gate/run.hpp"
#include "gate/timed_context.hpp"
#include "observe/log.hpp"

namespace hapax::gate {
namespace {

using flow::Action;
using flow::Result;
using observe::Answered;
using store::Phase;

constexpr std::chrono::seconds kRetryAfter{1};
constexpr std::chrono::milliseconds kShortWait{50};  // for a key

// The 4xx response that the handler chose, or 422 with its words.
Response rejection(const std::optional<Response>& said, const std::string& words) {
  if (said && said->status >= 400) return *said;
  return rejected(words).response;
}

// Whether PostgreSQL may do later what it did not do now.
bool may_pass(Phase phase, const store::Fault& fault) {
  return phase == Phase::claim || phase == Phase::account || fault.sqlstate == "55P03" ||
         fault.sqlstate == "57014" || fault.sqlstate.starts_with("40") ||
         store::classify(phase, fault) == store::FailureClass::outage;
}

}  // namespace

Executor::Executor(const ExecutorSetup& setup, std::uint64_t seed)
    : setup_(setup), session_(setup.connect), random_(seed) {}

Executor::~Executor() = default;

bool Executor::look() {
  std::string why;
  if (!session_.is_reachable(why)) {
    setup_.status.postgres_down("", why);
    return false;
  }
  setup_.status.postgres_up();
  return true;
}

Executed Executor::execute(const Request& request, Handler& handler, const Next& next) {
  std::unique_ptr<Run> begun = std::exchange(ahead_, nullptr);
  if (setup_.status.is_known_away() && !request.doubt)
    return {unavailable("The database is away. Try again with the same key."), {}};
  if (!begun || &begun->request != &request) begun = begin(request, handler);
  Run& run = *begun;
  if (setup_.status.is_closed(run.route.topic))
    return {unavailable("This route is closed until an operator has looked at it.",
                        std::chrono::seconds(60)),
            run.identity.fingerprint};
  std::optional<Answer> answer;
  while (!answer) {
    ahead_.reset();
    if (run.agains > 0) next.put_back();
    run.session_was_new = !session_.is_open();
    run.phase = Phase::claim;
    run.sent_commit = false;
    if (!session_.is_open() && !look()) {
      answer = unavailable("The database is away. Try again with the same key.");
      break;
    }
    try {
      answer = attempt(run, next);
      if (setup_.status.is_postgres_down()) setup_.status.postgres_up();
    } catch (...) {
      answer = after(run, std::current_exception());
    }
    if (time_.is_given_up()) {
      ahead_.reset();
      session_.drop();
      return {answer.value_or(unavailable("")), run.identity.fingerprint};
    }
    session_.clean();
    if (!answer && ++run.agains > 2 * flow::kMaxAgains)
      answer = unavailable("Others are faster again and again. Try again with the same key.");
  }
  if (answer->is_stored()) setup_.seen->add(run.hash);
  if (run.in_doubt && (answer->how == Answered::unavailable || answer->how == Answered::failed))
    answer = in_doubt(run);
  return {*std::move(answer), run.identity.fingerprint};
}

std::unique_ptr<Run> Executor::begin(const Request& request, Handler& handler) {
  const auto number = static_cast<std::int64_t>(random_() >> 1U);
  return std::make_unique<Run>(request, handler, setup_,
                               request.doubt ? request.doubt->run : number);
}

// Nothing: the request must run again, at once.
std::optional<Answer> Executor::attempt(Run& run, const Next& next) {
  if (setup_.operations != nullptr && setup_.operations->is_own(run.request.route))
    return setup_.operations->answer(*session_, run.request);
  if (!run.request.is_guarded()) return unguarded(run);
  if (!run.taken) run.began = std::chrono::system_clock::now();
  const store::ClaimRequest request = run.claim_request();
  if (run.agains == 0 && !run.taken && setup_.seen->has(run.hash))
    if (auto answer = look_up(run, request)) return answer;
  auto transaction = run.transaction ? std::move(run.transaction)
                                     : std::make_unique<store::Transaction>(*session_);
  const store::Claim claim =
      run.taken ? store::claim(*transaction, request, *std::exchange(run.taken, std::nullopt))
                : this->claim(*transaction, request);
  if (claim.holder) {
    const std::string& status = claim.holder->status;
    if (status == "completed") return answer_again(run, *transaction, request, claim);
    // A worker with the same scope has an open call to the outside.
    if (status != "failed" && status != "forgotten") return in_flight();
    if (store::take_over(*transaction, request, *claim.holder) != store::TakeOver::ours)
      return std::nullopt;
  }
  run.in_doubt = false;  // if an earlier COMMIT had taken effect, the key would be taken
  Answer answer = run.rejected
                      ? store_rejection(run, *transaction, request, claim.nonce)
                      : handle_claimed(run, std::move(transaction), request, claim.nonce, next);
  answer.expires = run.expiry();
  return answer;
}

// At most half of the lanes may wait for keys of other processes. Such keys may take long, and the
// other callers need lanes.
store::Claim Executor::claim(store::Transaction& transaction, store::ClaimRequest request) const {
  struct Counted {
    explicit Counted(std::atomic<std::size_t>& count) : all(count), others(all++) {}
    ~Counted() { --all; }
    std::atomic<std::size_t>& all;
    const std::size_t others;
  };
  const Counted counted(*setup_.claiming);
  if (counted.others >= setup_.lanes / 2) request.wait = std::min(setup_.wait, kShortWait);
  return store::claim(transaction, request);
}

// Throws: what the handler throws, or an exception if the handler was given up.
void Executor::handle(Run& run, flow::LentContext& context) {
  TimedContext timed(context, time_, setup_.status);
  time_.begin();
  try {
    run.handler.handle(run.message.message(), timed);
  } catch (...) {
    time_.end();
    throw;
  }
  if (!time_.end()) throw std::runtime_error("the handler ran longer than gate.handler_timeout");
}

// Precondition: the key is ours, in this transaction.
Answer Executor::handle_claimed(Run& run, std::unique_ptr<store::Transaction> claimed,
                                const store::ClaimRequest& request, const std::string& nonce,
                                const Next& next) {
  store::Transaction& transaction = *claimed;
  run.phase = Phase::handler;
  flow::Publisher publisher(run.route.publishing.get(), request.scope, run.identity, run.carried,
                            run.publishes_as);
  if (!request.prepares_late) publisher.prepare(*session_);
  flow::LentContext context(transaction, run.carried, run.route.max_result_bytes, &publisher,
                            &run.identity);
  try {
    handle(run, context);
  } catch (...) {
    run.said = context.response();
    store::refuse_ended(transaction, nonce);
    throw;
  }
  // If a statement that the handler deferred fails, the handler failed, though hapax sends that
  // statement with the completion.
  run.phase = transaction.has_pending() ? Phase::handler : Phase::complete;
  keep_outcome(run, transaction);  // may wait for a worker
  store::commit_synchronously(transaction);
  store::add_published(transaction, publisher.records());
  run.sent_commit = true;
  complete(std::move(claimed), request, nonce, context.stored_result(), next);
  publisher.committed();
  return {context.response() ? *context.response() : flow::answer_of(context.stored_result()),
          Answered::executed};
}

void Executor::keep_outcome(const Run& run, store::Transaction& transaction) const {
  if (!run.waits_for_outcome) return;
  setup_.operations->keep_outcome(transaction, run.request,
                                  key::hex(run.identity.fingerprint.digest));
}

// If the handler has left nothing in the session, also takes the key of the following request.
void Executor::complete(std::unique_ptr<store::Transaction> transaction,
                        const store::ClaimRequest& request, const std::string& nonce,
                        const std::optional<std::string>& result, const Next& next) {
  const auto following = session_->is_clean() ? next.take() : std::nullopt;
  if (!following || !has_a_key_to_claim(*following->request))
    return store::complete(*transaction, request, nonce, result);
  std::unique_ptr<Run> run = begin(*following->request, *following->handler);
  if (setup_.seen->has(run->hash))
    store::complete(*transaction, request, nonce, result);
  else
    run->taken = store::complete_and_take(*transaction, request, nonce, result,
                                          store::Durability::synchronous, run->claim_request());
  if (run->taken) run->transaction = std::move(transaction);
  ahead_ = std::move(run);
}

bool Executor::has_a_key_to_claim(const Request& request) const {
  const bool is_own = setup_.operations != nullptr && setup_.operations->is_own(request.route);
  return !is_own && request.is_guarded() &&
         !setup_.status.is_closed(setup_.routes[request.route].topic);
}

// The handler has rejected the request, and its transaction is rolled back. The rejection is stored
// like any answer. If the key became `failed` instead, a retry could take it over and run.
Answer Executor::store_rejection(Run& run, store::Transaction& transaction,
                                 const store::ClaimRequest& request, const std::string& nonce) {
  run.phase = Phase::account;
  store::commit_synchronously(transaction);
  run.sent_commit = true;
  store::complete(transaction, request, nonce, flow::stored_text(*run.rejected));
  return {*run.rejected, Answered::rejected};
}

// A request with a safe method has no key. It writes nothing, and its answer is not stored.
Answer Executor::unguarded(Run& run) {
  store::Transaction transaction(*session_);
  const std::string nonce = store::begin_read_only(transaction);
  run.phase = Phase::handler;
  flow::LentContext context(transaction, run.carried, run.route.max_result_bytes, nullptr, nullptr);
  try {
    handle(run, context);
    if (transaction.has_pending()) transaction.flush();
  } catch (...) {
    run.said = context.response();
    store::refuse_ended(transaction, nonce);
    throw;
  }
  store::refuse_ended(transaction, nonce);  // after a COMMIT of its own the handler could write
  return {context.response() ? *context.response() : flow::answer_of(context.stored_result()),
          Answered::unguarded};
}

std::optional<Answer> Executor::answer_again(const Run& run, store::Transaction& transaction,
                                             const store::ClaimRequest& request,
                                             const store::Claim& claim) {
  std::optional<store::StoredAnswer> stored = claim.answer;
  // A worker's commit may not be on the disk yet. After a later synchronous COMMIT it is.
  // PostgreSQL also shows a COMMIT of ours that it stopped before the synchronous standby had it.
  if (stored->holder.group != setup_.name) {
    std::optional<std::string> result;
    if (!store::count_duplicate(transaction, request, result)) return std::nullopt;
    stored = store::read_answer(transaction, request);
    if (!stored || stored->holder.status != "completed") return std::nullopt;
    store::commit_synchronously(transaction);
    store::complete(transaction, request, claim.nonce, std::nullopt);
  } else if (run.in_doubt) {
    store::await_durable(transaction);
  }
  return answer_with(run, *stored);
}

// Nothing: the key does not exist, or a worker committed it, and it may not be on the disk yet.
std::optional<Answer> Executor::look_up(const Run& run, const store::ClaimRequest& request) {
  const auto stored = store::read_answer(*session_, request);
  if (!stored || stored->holder.status != "completed" || stored->holder.group != setup_.name)
    return std::nullopt;
  return answer_with(run, *stored);
}

Answer Executor::answer_with(const Run& run, const store::StoredAnswer& stored) const {
  if (stored.holder.fingerprint != run.identity.fingerprint) return drifted();
  // If this run stored the answer, PostgreSQL's answer to its COMMIT was lost.
  const bool own = stored.holder.is(run.source);
  Answer answer{flow::answer_of(stored.result), own ? Answered::executed : Answered::replayed};
  // The key that encrypts the ids may have changed since.
  const bool accepted = run.waits_for_outcome && flow::is_acceptance(answer.response);
  for (auto& [name, value] : answer.response.headers)
    if (accepted && name == "Location")
      value = setup_.operations->location_of(run.request.tenant, run.request.key);
  answer.expires = Run::expiry_of(stored.expires_at);
  return answer;
}

// Decides by the failure policy what follows from an exception. Nothing: run again, at once.
std::optional<Answer> Executor::after(Run& run, const std::exception_ptr& error) {
  const flow::Thrown thrown = flow::thrown_by(error);
  if (thrown.fault.kind == store::Fault::Kind::in_doubt ||
      (run.sent_commit && store::may_have_committed(thrown.fault))) {
    run.in_doubt = true;
    run.doubt_sqlstate = thrown.fault.sqlstate;
  }
  const flow::Decision decision = flow::decide({.of = flow::Failure::Of::message,
                                                .phase = run.phase,
                                                .fault = thrown.fault,
                                                .thrown = thrown.what,
                                                .session_was_new = run.session_was_new,
                                                .agains = run.agains,
                                                .outages = run.outages});
  switch (session_.follow(decision)) {
    case Action::run_on_new_session: return std::nullopt;
    case Action::count: return failed(run, thrown);
    case Action::give_up:
      run.rejected = rejection(run.said, thrown.fault.text);
      if (run.request.is_guarded()) return std::nullopt;
      return Answer{*run.rejected, Answered::unguarded};
    default: break;
  }
  if (decision.lost_in_handler) ++run.outages;
  switch (decision.result) {
    case Result::again: return std::nullopt;
    case Result::busy: return run.request.is_guarded() ? in_flight() : failed(run, thrown);
    case Result::outage:
      // The connection was lost while nothing ran. Perhaps PostgreSQL still answers a new one.
      if (run.phase == Phase::claim && !run.session_was_new) return std::nullopt;
      return outage(run, thrown);
    default: break;
  }
  if (decision.reason == "handler_ended_transaction") {
    setup_.status.close_route(run.route.topic, std::string(decision.reason));
    return in_part(run);
  }
  return failed(run, thrown);
}

// If a handler's statement meets a limit, or its session was ended, that is no outage for other
// requests. The log must not show its error either, because the error may quote the request.
Answer Executor::outage(const Run& run, const flow::Thrown& thrown) {
  std::string why;
  if (run.phase == Phase::claim)
    setup_.status.postgres_down(thrown.fault.sqlstate, thrown.fault.text);
  else if (session_.is_reachable(why))
    return failed(run, thrown);
  else
    setup_.status.postgres_down("", why);
  return unavailable("The database is away. Try again with the same key.");
}

Answer Executor::in_doubt(const Run& run) const {
  observe::log::warning(
      "request_in_doubt",
      {{"route", run.route.topic},
       {"handler", run.route.handler.name},
       {"sqlstate", run.doubt_sqlstate},
       {"trace_id", run.carried.trace_id()}},
      run.doubt_sqlstate.empty()
          ? "PostgreSQL did not answer a request's COMMIT; a retry with its key finds out whether "
            "it took effect"
          : "PostgreSQL answered a request's COMMIT with an error that may come behind it; a retry "
            "with its key finds out whether it took effect");
  return unavailable("It is not known whether it took effect. Try again with the same key.");
}

// The answer has no Retry-After, because a retry would repeat the part that was committed.
Answer Executor::in_part(const Run& run) const {
  observe::log::error("request_in_part",
                      {{"route", run.route.topic},
                       {"handler", run.route.handler.name},
                       {"trace_id", run.carried.trace_id()}},
                      "a handler ended its transaction; part of a request may have taken effect");
  return problem(500, "in-part", "The request was broken off",
                 "Its handler ended the transaction, so part of it may have taken effect. Ask the "
                 "operator before you try again.",
                 Answered::failed);
}

// Nothing is stored, so a retry runs.
Answer Executor::failed(const Run& run, const flow::Thrown& thrown) const {
  if (run.in_doubt) return unavailable("");  // execute() logs it
  observe::log::warning(
      "request_failed",
      {{"route", run.route.topic},
       {"handler", run.route.handler.name},
       {"sqlstate", thrown.fault.sqlstate},
       {"trace_id", run.carried.trace_id()},
       {"error",
        setup_.log_error_text ? std::optional<std::string_view>(thrown.fault.text) : std::nullopt}},
      "a request failed and took no effect; log.error_text shows why");
  if (thrown.what == flow::Thrown::What::retry) {
    const auto wait = thrown.after.value_or(kRetryAfter);
    return unavailable("The request took no effect. Try again later with the same key.",
                       std::clamp(std::chrono::ceil<std::chrono::seconds>(wait), kRetryAfter,
                                  std::chrono::seconds(flow::kLongestRetryWait)));
  }
  if (may_pass(run.phase, thrown.fault))
    return unavailable("The request took no effect. Try again with the same key.");
  return problem(500, "failed", "The request failed",
                 "The request took no effect. Try again with the same key.", Answered::failed,
                 kRetryAfter);
}

}  // namespace hapax::gate
