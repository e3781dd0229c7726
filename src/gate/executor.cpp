#include "gate/executor.hpp"

#include "flow/lent_context.hpp"
#include "gate/problem.hpp"
#include "gate/request_message.hpp"
#include "key/key_text.hpp"
#include "observe/log.hpp"

namespace hapax::gate {
namespace {

using flow::Action;
using flow::Result;
using observe::Answered;
using store::Phase;

constexpr std::chrono::seconds kRetryAfter{1};
constexpr std::size_t kMaxDetail = 4096;  // of a Reject's words

// 4xx as the handler chose, or 422 with its words.
Response rejection(const std::optional<Response>& said, const std::string& words) {
  if (said && said->status >= 400) return *said;
  return problem(422, "rejected", "The request was refused", words.substr(0, kMaxDetail),
                 Answered::rejected)
      .response;
}

// What a key's result is to an HTTP client.
Response response_of(const std::optional<std::string>& result) {
  if (!result) return {.status = 204};
  if (auto response = flow::response_of(*result)) return *std::move(response);
  return {200, {{"Content-Type", "application/json"}}, *result};
}

// PostgreSQL did not do it now, and may do it later.
bool may_pass(const store::Fault& fault) {
  using Kind = store::Fault::Kind;
  return fault.kind == Kind::connection || fault.kind == Kind::in_doubt ||
         fault.sqlstate == "55P03" || fault.sqlstate == "57014" || fault.sqlstate.starts_with("40");
}

}  // namespace

// One request, and how far it has come.
struct Executor::Run {
  Run(const Request& asked, Handler& by, const ExecutorSetup& setup, std::int64_t number)
      : request(asked),
        handler(by),
        route(setup.routes[asked.route]),
        message(asked, setup.callers, route.topic, number),
        identity{asked.is_guarded() ? key::encode_key(asked.key) : "",
                 key::encode_key(asked.tenant),
                 asked.is_guarded() ? fingerprint_of(asked) : key::Fingerprint{}},
        source{setup.name, route.topic, 0, 0, number} {}

  const Request& request;
  Handler& handler;
  const flow::Route& route;
  const RequestMessage message;
  const key::Identity identity;
  const store::Source source;  // its number tells this run from others
  Phase phase = Phase::claim;
  int agains = 0;
  int outages = 0;
  bool session_was_new = false;
  std::optional<Response> said;      // by a handler that then threw
  std::optional<Response> rejected;  // to be stored instead of running the handler
};

bool Executor::look() {
  std::string why;
  if (!session_.is_reachable(why)) {
    setup_.status.postgres_down("", why);
    return false;
  }
  setup_.status.postgres_up();
  return true;
}

Executed Executor::execute(const Request& request, Handler& handler) {
  Run run(request, handler, setup_, static_cast<std::int64_t>(random_() >> 1U));
  if (setup_.status.is_closed(run.route.topic))
    return {unavailable("This route is closed until an operator has looked at it.",
                        std::chrono::seconds(60)),
            run.identity.fingerprint};
  std::optional<Answer> answer;
  while (!answer) {
    run.session_was_new = !session_.is_open();
    run.phase = Phase::claim;
    if (!session_.is_open() && !look()) {
      answer = unavailable("The database is away. Try again with the same key.");
      break;
    }
    try {
      answer = attempt(run);
      if (setup_.status.is_postgres_down()) setup_.status.postgres_up();
    } catch (...) {
      answer = after(run, std::current_exception());
    }
    session_.clean();
    if (!answer && ++run.agains > 2 * flow::kMaxAgains)
      answer = unavailable("Others are faster again and again. Try again with the same key.");
  }
  return {*std::move(answer), run.identity.fingerprint};
}

// Nothing: to be run again, at once.
std::optional<Answer> Executor::attempt(Run& run) {
  if (!run.request.is_guarded()) return unguarded(run);
  const store::ClaimRequest request{.identity = run.identity,
                                    .scope = run.route.key.scope,
                                    .source = run.source,
                                    .retention = run.route.retention,
                                    .prepares_late = run.agains > 0,
                                    .wait = setup_.wait};
  store::Transaction transaction(*session_);
  const store::Claim claim = store::claim(transaction, request);
  if (claim.holder) {
    const std::string& status = claim.holder->status;
    if (status == "completed")
      return answer_again(run, transaction, request, claim.nonce, *claim.holder);
    // A worker that shares the scope calls to the outside.
    if (status != "failed" && status != "forgotten") return in_flight();
    if (store::take_over(transaction, request, *claim.holder) != store::TakeOver::ours)
      return std::nullopt;
  }
  Answer answer = run.rejected ? store_rejection(run, transaction, request, claim.nonce)
                               : handle_claimed(run, transaction, request, claim.nonce);
  answer.expires =
      http_date(std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()) +
                run.route.retention);
  return answer;
}

// Precondition: the key is ours, in this transaction.
Answer Executor::handle_claimed(Run& run, store::Transaction& transaction,
                                const store::ClaimRequest& request, const std::string& nonce) {
  run.phase = Phase::handler;
  const Message& message = run.message.message();
  flow::Publisher publisher(nullptr, request.scope, run.identity, message, run.source);
  flow::LentContext context(transaction, run.route.max_result_bytes, &publisher);
  try {
    run.handler.handle(message, context);
  } catch (...) {
    run.said = context.response();
    store::refuse_ended(transaction, nonce);
    throw;
  }
  // What the handler deferred fails as the handler's, though it travels with the completion.
  run.phase = transaction.has_pending() ? Phase::handler : Phase::complete;
  store::commit_synchronously(transaction);
  store::complete(transaction, request, nonce, context.stored_result());
  return {context.response() ? *context.response() : response_of(context.stored_result()),
          Answered::executed};
}

// The handler has rejected the request, and its transaction is rolled back. A `failed` key could be
// taken over, and the retry would run: so this is an answer as any other.
Answer Executor::store_rejection(Run& run, store::Transaction& transaction,
                                 const store::ClaimRequest& request, const std::string& nonce) {
  run.phase = Phase::account;
  store::commit_synchronously(transaction);
  store::complete(transaction, request, nonce, flow::stored_text(*run.rejected));
  return {*run.rejected, Answered::rejected};
}

// A safe method: no key, nothing is written, nothing is stored.
Answer Executor::unguarded(Run& run) {
  run.phase = Phase::handler;
  store::Transaction transaction(*session_);
  transaction.run("SET TRANSACTION READ ONLY");
  flow::LentContext context(transaction, run.route.max_result_bytes, nullptr);
  try {
    run.handler.handle(run.message.message(), context);
  } catch (...) {
    run.said = context.response();
    throw;
  }
  if (transaction.has_pending()) transaction.flush();
  return {context.response() ? *context.response() : response_of(context.stored_result()),
          Answered::unguarded};
}

std::optional<Answer> Executor::answer_again(const Run& run, store::Transaction& transaction,
                                             const store::ClaimRequest& request,
                                             const std::string& nonce,
                                             const store::KeyHolder& holder) {
  // What a worker committed may not be on the disk yet. A synchronous COMMIT behind it is.
  const bool may_be_lost = holder.group != setup_.name;
  std::optional<std::string> result;
  if (may_be_lost && !store::count_duplicate(transaction, request, result)) return std::nullopt;
  const auto stored = store::read_answer(transaction, request);
  if (!stored || stored->holder.status != "completed") return std::nullopt;
  if (may_be_lost) {
    store::commit_synchronously(transaction);
    store::complete(transaction, request, nonce, std::nullopt);
  } else if (stored->holder.group != setup_.name) {
    return std::nullopt;  // another operation has the key by now
  }
  if (stored->holder.fingerprint != run.identity.fingerprint) return drifted();
  // If it is this run's, the answer to its COMMIT was lost.
  const bool own = stored->holder.is(run.source);
  Answer answer{response_of(stored->result), own ? Answered::executed : Answered::replayed};
  answer.expires = http_date(stored->expires_at);
  return answer;
}

// What follows from an exception, by the policy of all handlers. Nothing: run again, at once.
std::optional<Answer> Executor::after(Run& run, const std::exception_ptr& error) {
  const flow::Thrown thrown = flow::thrown_by(error);
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
    case Result::busy: return in_flight();
    case Result::outage:
      // The session was lost while nothing ran. Perhaps only the session.
      if (run.phase == Phase::claim && !run.session_was_new) return std::nullopt;
      setup_.status.postgres_down(thrown.fault.sqlstate, thrown.fault.text);
      return unavailable("The database is away. Try again with the same key.");
    default: break;
  }
  if (decision.reason == "handler_ended_transaction")
    setup_.status.close_route(run.route.topic, std::string(decision.reason));
  return failed(run, thrown);
}

// Nothing is stored, so that the retry runs.
Answer Executor::failed(const Run& run, const flow::Thrown& thrown) const {
  observe::log::warning(
      "request_failed",
      {{"route", run.route.topic},
       {"handler", run.route.handler.name},
       {"sqlstate", thrown.fault.sqlstate},
       {"error", setup_.log_error_text ? std::string_view(thrown.fault.text) : "not shown"}},
      "a request failed and took no effect; log.error_text shows why");
  if (thrown.what == flow::Thrown::What::retry) {
    const auto wait = thrown.after.value_or(kRetryAfter);
    return unavailable("The request took no effect. Try again later with the same key.",
                       std::max(kRetryAfter, std::chrono::ceil<std::chrono::seconds>(wait)));
  }
  if (run.phase == Phase::claim || run.phase == Phase::account || may_pass(thrown.fault))
    return unavailable("The request took no effect. Try again with the same key.");
  return problem(500, "failed", "The request failed",
                 "The request took no effect. Try again with the same key.", Answered::failed,
                 kRetryAfter);
}

}  // namespace hapax::gate
