#include "flow/segment.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "flow/booking.hpp"
#include "flow/crash_point.hpp"
#include "flow/lent_context.hpp"
#include "flow/verdicts.hpp"
#include "store/message/position_claim.hpp"
#include "store/outside/answer_claims.hpp"

namespace hapax::flow {
namespace {

using store::Phase;
using Clock = std::chrono::steady_clock;
using Then = Tried::Then;

std::string name_of(const Message& message) {
  return "partition " + std::to_string(message.partition()) + " offset " +
         std::to_string(message.offset());
}

bool has_key_of(const key::Identity& one, const key::Identity& other) {
  return one.key == other.key && one.tenant == other.tenant;
}

// In the order in which every process takes locks. Messages of one key keep their order.
std::vector<std::size_t> by_key(Segment::Identities identities) {
  std::vector<std::size_t> order(identities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t left, std::size_t right) {
    return std::tie(identities[left]->key, identities[left]->tenant, left) <
           std::tie(identities[right]->key, identities[right]->tenant, right);
  });
  return order;
}

// Whether the message is neither ours nor a plain duplicate. If it is a duplicate because Kafka
// delivered it again, its fingerprint may differ. That decides nothing about other messages of its
// key, and `repeated` tells that there are some.
bool stands_in_the_way(const store::BatchClaim::Key& key, const store::ClaimRequest& request,
                       bool repeated, const Handler& handler) {
  if (key.ours) return false;
  if (!key.holder || key.holder->status != "completed" || handler.wants_duplicates()) return true;
  return key.holder->fingerprint != request.identity.fingerprint &&
         (repeated || !key.holder->is(request.source));
}

}  // namespace

Tried Segment::run() {
  std::string why;
  if (!setup_.session.is_reachable(why))
    return {.then = Then::given_up, .verdict = away(std::move(why))};
  Tried tried;
  try {
    tried = run_segment();
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    tried = failed(error);
    const store::Fault fault = store::fault_of(error);
    tried.in_doubt = sent_commit_ && store::may_have_committed(fault);
    tried.sqlstate = fault.sqlstate;
  }
  if (tried.then != Then::done)
    std::ranges::fill(setup_.outcomes, Outcome::of(Result::waits));  // nothing took effect
  setup_.session.clean();
  return tried;
}

Tried Segment::run_segment() {
  const auto& [session, watch, takes_turns, jobs, identities, outcomes] = setup_;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (session.is_behind_a_loss(jobs[i].task.incarnation))
      return {.then = Then::some_alone, .alone = {i}};
  Claims claims;
  if (const auto alone = collect(claims)) return {.then = Then::some_alone, .alone = {*alone}};
  const auto& requests = claims.requests;

  store::Transaction transaction(*session);
  begin(transaction);
  const store::BatchClaim claim = this->claim(transaction, claims);
  std::ranges::fill(outcomes, Outcome::of(Result::duplicate));
  std::vector<std::size_t> alone;
  for (std::size_t n = 0; n < requests.size(); ++n) {
    if (claim.keys[n].answer && settle(claims.jobs[n], *claim.keys[n].answer)) continue;
    if (stands_in_the_way(claim.keys[n], requests[n], claims.repeated[n],
                          *jobs[claims.jobs[n]].handler))
      alone.push_back(claims.jobs[n]);
  }
  if (!alone.empty()) return {.then = Then::some_alone, .alone = std::move(alone)};
  std::vector<std::optional<std::size_t>> ours(jobs.size());  // index of the request
  for (std::size_t n = 0; n < requests.size(); ++n) {
    if (!claim.keys[n].ours) continue;
    ours[claims.jobs[n]] = n;
    outcomes[claims.jobs[n]].result = Result::completed;
  }
  if (std::ranges::none_of(claim.keys, &store::BatchClaim::Key::ours)) return {};  // all known
  claimed(transaction);
  crash_point("batch_claimed");

  const Effects effects = run_handlers(ours, requests, claim.nonce, transaction);
  crash_point("batch_handled");
  phase_ = transaction.has_pending() ? Phase::handler : Phase::complete;
  const Route& route = jobs.front().task.route;
  complete(transaction);
  store::add_results(transaction, requests, effects.results);
  store::add_published(transaction, effects.published);
  sent_commit_ = true;
  store::seal(transaction, claim.nonce, route.durability);
  if (!effects.published.empty()) route.publishing->nudge();
  crash_point("batch_committed");
  return {};
}

store::BatchClaim Segment::claim(store::Transaction& transaction, const Claims& claims) const {
  const auto& requests = claims.requests;
  if (setup_.jobs.front().task.answered != nullptr) {
    std::vector<std::int64_t> tokens;
    for (const std::size_t job : claims.jobs)
      tokens.push_back(setup_.jobs[job].task.answered->token);
    return store::claim_answers(transaction, requests, tokens);
  }
  if (requests.front().by_position) return store::claim_positions(transaction, requests);
  return store::claim_batch(transaction, requests, setup_.takes_turns);
}

std::optional<std::size_t> Segment::collect(Claims& claims) const {
  const auto& identities = setup_.identities;
  claims.sources.reserve(setup_.jobs.size());  // the requests refer to them
  for (const std::size_t i : by_key(identities)) {
    const Job& job = setup_.jobs[i];
    const key::Identity& identity = *identities[i];
    if (!claims.jobs.empty() && has_key_of(identity, *identities[claims.jobs.back()])) {
      // A duplicate of the first, which settles with it.
      if (identities[claims.jobs.back()]->fingerprint != identity.fingerprint ||
          job.handler->wants_duplicates() || job.task.answered != nullptr)
        return i;
      claims.repeated.back() = true;
      continue;
    }
    claims.jobs.push_back(i);
    claims.repeated.push_back(false);
    claims.sources.push_back(job.task.source());
    claims.requests.push_back({.identity = identity,
                               .scope = job.task.route.key.scope,
                               .source = claims.sources.back(),
                               .retention = retention(),
                               .epoch = job.task.epoch,
                               .by_position = key::is_by_position(job.task.route.key),
                               .reads_answer = reads_answers()});
  }
  return std::nullopt;
}

// Runs the handlers of the keys that are ours, in order. Returns what has still to be sent.
Segment::Effects Segment::run_handlers(std::span<const std::optional<std::size_t>> ours,
                                       std::span<const store::ClaimRequest> requests,
                                       const std::string& nonce, store::Transaction& transaction) {
  const std::span<const Job> jobs = setup_.jobs;
  const Route& route = jobs.front().task.route;
  Effects effects;
  std::size_t result_bytes = 0;
  auto now = Clock::now();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!ours[i]) continue;
    running_ = i;
    const Job& job = jobs[i];
    phase_ = Phase::handler;
    const traces::Carried carried(job.task.message, job.task.trace);
    Publisher publisher(route.publishing.get(), route.key.scope, *setup_.identities[i], carried,
                        publishes_as(i, requests[*ours[i]].source));
    publisher.prepare(transaction.session());
    LentContext context(transaction, carried, route.max_result_bytes, &publisher,
                        &requests[*ours[i]].identity, requests[*ours[i]].by_position);
    try {
      store::add_look(transaction, nonce);
      const Watched watched(setup_.watch, job.task, now);
      handle(i, transaction, context);
      if (context.stored_result()) {
        effects.results.emplace_back(*ours[i], *context.stored_result());
        result_bytes += context.stored_result()->size();
      }
      if (result_bytes > LentContext::kMaxDeferredBytes) {
        store::add_results(transaction, requests, std::exchange(effects.results, {}));
        transaction.flush();
        result_bytes = 0;
      }
    } catch (...) {
      store::refuse_ended(transaction, nonce);
      throw;
    }
    const auto began = std::exchange(now, Clock::now());
    setup_.outcomes[i].handler_time = now - began;
    std::ranges::copy(publisher.records(), std::back_inserter(effects.published));
  }
  running_.reset();
  return effects;
}

void Segment::handle(std::size_t job, store::Transaction& /*transaction*/, LentContext& context) {
  const auto& [task, handler, order_key] = setup_.jobs[job];
  flow::handle(*handler, task.message, task.answered == nullptr ? nullptr : &task.answered->answer,
               context);
}

// What to do about a segment that rolled back.
Tried Segment::failed(const std::exception_ptr& error) {
  Thrown thrown = thrown_by(error);
  const Decision decision =
      decide({.of = Failure::Of::batch,
              .phase = phase_,
              .fault = thrown.fault,
              .thrown = thrown.what,
              .handler_is_known = running_.has_value(),
              .last_run = setup_.jobs.front().task.route.retry.exhausted(1, {}),
              .takes_turns = setup_.takes_turns});
  switch (setup_.session.follow(decision)) {
    case Action::take_turns: return {.then = Then::again};
    case Action::split: return {.then = Then::halves};
    case Action::run_alone: return {.then = Then::some_alone, .alone = {*running_}};
    case Action::count:
      return {.then = Then::some_alone, .alone = {*running_}, .failed_run = std::move(thrown)};
    default: break;
  }
  Tried tried{.then = Then::given_up, .verdict = ending(decision, thrown.fault, 0)};
  if (is_halt(decision.result)) {
    tried.verdict.of_batch = true;
    tried.verdict.detail = why_halted(thrown.fault);
  }
  // If the connection was lost in a handler, that counts for its message, not for the first one.
  if (decision.result == Result::outage && running_ &&
      std::exchange(tried.verdict.lost_in_handler, false))
    tried.lost_in = running_;
  return tried;
}

std::string Segment::why_halted(const store::Fault& fault) const {
  return "a handler ended the transaction of a batch (COMMIT, ROLLBACK, SET CONSTRAINTS or RESET "
         "ALL); part of its effect may stand alone. With routes[].batch 1 the next such halt "
         "names its message. The batch begins with " +
         name_of(setup_.jobs.front().task.message) +
         (running_ ? ", and the last that ran is " + name_of(setup_.jobs[*running_].task.message)
                   : "") +
         ": " + fault.text;
}

}  // namespace hapax::flow
