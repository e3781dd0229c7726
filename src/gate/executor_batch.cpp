// Several requests in one transaction, each with the outcome that it would have alone.
//
// A lane takes requests of one route that wait anyway, at most its share (desk.cpp). One statement
// claims all their keys, the handlers run in order, and one COMMIT ends it: a segment, as of a
// worker's batch (flow/segment.cpp). Answers come only then. In all other cases the transaction is
// rolled back. The request that stopped it leaves, and the others try once more. A request without
// an answer runs alone in the end, as if there had been no batch (executor.cpp). If it is not known
// whether the batch was committed, the claim tells: it knows each run by its number
// (Request::doubt).
//
// To a handler its neighbours look like requests that were committed a moment ago. They share only
// now(), locks, and what triggers set. For that, a handler may run plain statements only, which
// leave nothing in the session and cannot end the transaction. Others are refused before they run.
#include <algorithm>
#include <numeric>
#include <utility>

#include "flow/segment.hpp"
#include "gate/desk.hpp"
#include "gate/executor.hpp"
#include "gate/run.hpp"

namespace hapax::gate {
namespace {

using Then = flow::Tried::Then;

// For a key that another transaction has: its neighbours should not wait for it.
constexpr std::chrono::milliseconds kBatchWait{50};

constexpr std::chrono::seconds kAskForDeferred{10};

// Those that stood in the way leave one after the other; with more of them it is cheaper alone.
constexpr int kTries = 3;

}  // namespace

struct BatchMember {
  std::shared_ptr<Ticket> ticket;
  std::unique_ptr<Run> run;
  Response response = {};
  std::optional<store::StoredAnswer> stored = {};  // its key was completed before
};

// The objects to which a segment refers. They are made before it.
struct BatchParts {
  HandlerTime::Tickets tickets = {};  // that have no answer, also of those that left
  std::vector<BatchMember*> members = {};
  std::vector<flow::Job> jobs = {};
  std::vector<std::optional<key::Identity>> identities = {};
  std::vector<flow::Outcome> outcomes = {};
  const flow::HandlerWatch watch = {};
};

class BatchSegment final : private BatchParts, private flow::Segment {
 public:
  BatchSegment(Executor& executor, Handler& handler, std::span<BatchMember> all,
               std::span<const std::size_t> these)
      : BatchParts(made(executor, handler, all, these)),
        Segment({.session = executor.session_,
                 .watch = watch,
                 .takes_turns = false,
                 .jobs = jobs,
                 .identities = identities,
                 .outcomes = outcomes}),
        executor_(executor) {}

  flow::Tried run() {
    executor_.time_.serve_batch(std::move(tickets), executor_.setup_.batch_time,
                                [this] { executor_.session_->cut(); });
    return Segment::run();
  }

  bool met_other_than_plain() const { return met_other_than_plain_; }

  // Nothing: a worker has completed its key. Precondition: the transaction is committed.
  std::optional<Executed> executed(std::size_t job) {
    BatchMember& member = *members[job];
    if (!member.stored && outcomes[job].result != flow::Result::completed) return std::nullopt;
    const Run& run = *member.run;
    Answer answer = member.stored ? executor_.answer_with(run, *member.stored)
                                  : Answer{std::move(member.response), observe::Answered::executed,
                                           run.expiry()};
    if (answer.is_stored()) executor_.setup_.seen->add(run.hash);
    return Executed{std::move(answer), run.identity.fingerprint};
  }

 private:
  static BatchParts made(Executor& executor, Handler& handler, std::span<BatchMember> all,
                         std::span<const std::size_t> these) {
    BatchParts made;
    for (const BatchMember& member : all) made.tickets.push_back(member.ticket);
    for (const std::size_t i : these) {
      const Run& run = *made.members.emplace_back(&all[i])->run;
      all[i].stored.reset();
      made.jobs.push_back({.task = {.route = run.route,
                                    .message = run.message.message(),
                                    .group = executor.setup_.name,
                                    .generation = run.source.generation,
                                    .trace = run.request.trace ? &*run.request.trace : nullptr},
                           .handler = &handler,
                           .order_key = 0});
      made.identities.emplace_back(run.identity);
    }
    made.outcomes.resize(these.size(), flow::Outcome::of(flow::Result::waits));
    return made;
  }

  std::chrono::seconds retention() const override { return members.front()->run->retention(); }

  bool reads_answers() const override { return true; }

  // A worker's commit may not be on the disk yet.
  bool settle(std::size_t job, const store::StoredAnswer& stored) override {
    if (stored.holder.status != "completed" || stored.holder.group != executor_.setup_.name)
      return false;
    members[job]->stored = stored;
    return true;
  }

  void begin(store::Transaction& transaction) override {
    transaction.take_plain_only();
    const auto bound = [&](const char* setting, std::chrono::milliseconds configured,
                           std::chrono::milliseconds most) {
      const auto least = configured.count() > 0 ? std::min(configured, most) : most;
      set(transaction, setting, std::to_string(least.count()));
    };
    const store::Session& session = transaction.session();
    bound("lock_timeout", std::chrono::milliseconds(std::stoll(session.lock_timeout())),
          kBatchWait);
    bound("statement_timeout", session.statement_timeout(), executor_.setup_.batch_time);
  }

  // A trigger may catch 55P03 and go on, so rows are waited for as long as alone. What ends a
  // statement that waits is statement_timeout, which nothing catches.
  void claimed(store::Transaction& transaction) override {
    set(transaction, "lock_timeout", transaction.session().lock_timeout());
  }

  static void set(store::Transaction& transaction, const char* setting, const std::string& ms) {
    transaction.add("SET LOCAL " + std::string(setting) + " TO " + ms);
  }

  void handle(std::size_t job, store::Transaction& transaction,
              flow::LentContext& context) override {
    BatchMember& member = *members[job];
    executor_.time_.next(member.ticket);
    transaction.close_rows();  // or a trigger for each row would see the rows of those behind it
    try {
      executor_.handle(*member.run, context);
      if (transaction.has_refused()) throw store::NotPlain();
    } catch (...) {
      met_other_than_plain_ = transaction.has_refused();
      throw;
    }
    member.response =
        context.response() ? *context.response() : flow::answer_of(context.stored_result());
  }

  const store::Source& publishes_as(std::size_t job, const store::Source&) const override {
    return members[job]->run->publishes_as;
  }

  void complete(store::Transaction& transaction) override {
    store::commit_synchronously(transaction);
    for (std::size_t i = 0; i < members.size(); ++i)
      if (outcomes[i].result == flow::Result::completed)
        executor_.keep_outcome(*members[i]->run, transaction);
  }

  Executor& executor_;
  bool met_other_than_plain_ = false;
};

std::vector<BatchAnswer> Executor::execute_batch(std::span<const std::shared_ptr<Ticket>> tickets,
                                                 Handler& handler, BatchPace& pace) {
  ahead_.reset();
  std::vector<BatchAnswer> answers(tickets.size());
  const flow::Route& route = setup_.routes[tickets.front()->request.route];
  if (setup_.status.is_known_away() || setup_.status.is_closed(route.topic)) return answers;
  std::vector<BatchMember> all;
  const std::optional<bool> deferred = has_deferred();
  if (deferred == true) pace.cannot_share();
  if (deferred != false) return answers;
  for (const auto& ticket : tickets) all.push_back({ticket, begin(ticket->request, handler)});
  std::vector<std::size_t> left(all.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  for (int tries = 0; left.size() > 1 && tries < kTries; ++tries)
    left = try_batch(all, std::move(left), handler, pace, answers);
  return answers;
}

// Whether something of the user's tables waits for COMMIT. It would judge all requests together.
// Asked again from time to time, because a migration may add it. Nothing: there is no answer.
std::optional<bool> Executor::has_deferred() {
  std::string why;
  if (Clock::now() < ask_for_deferred_at_) return has_deferred_;
  if (!session_.is_reachable(why)) return std::nullopt;
  try {
    has_deferred_ = store::has_deferred(*session_);
    ask_for_deferred_at_ = Clock::now() + kAskForDeferred;
  } catch (const store::DatabaseError&) {
    session_.drop();
    return std::nullopt;
  }
  return has_deferred_;
}

// One try of those that are left. Who may try again.
std::vector<std::size_t> Executor::try_batch(std::span<BatchMember> all,
                                             std::vector<std::size_t> left, Handler& handler,
                                             BatchPace& pace, std::vector<BatchAnswer>& answers) {
  BatchSegment transaction(*this, handler, all, left);
  const flow::Tried tried = transaction.run();
  if (time_.is_broken_up() || time_.is_given_up()) {
    pace.contended();
    session_.drop();
    for (std::size_t i = 0; i < all.size(); ++i)
      answers[i].is_taken =
          all[i].ticket == time_.current() ? time_.is_given_up() : time_.is_broken_up();
    return {};
  }
  if (tried.in_doubt)
    for (const std::size_t i : left)
      all[i].ticket->request.doubt = {all[i].run->source.offset, tried.sqlstate};
  switch (tried.then) {
    case Then::done:
      if (setup_.status.is_postgres_down()) setup_.status.postgres_up();
      pace.passed(left.size(), time_.own());
      for (std::size_t n = 0; n < left.size(); ++n)
        answers[left[n]].executed = transaction.executed(n);
      return {};
    case Then::some_alone:
      if (transaction.met_other_than_plain()) {
        pace.cannot_share();
        return {};
      }
      time_.is_late() ? pace.contended() : pace.one_left();
      for (const std::size_t alone : tried.alone) left[alone] = all.size();
      std::erase(left, all.size());
      return left;
    case Then::halves: pace.one_left(); return {};
    case Then::again: pace.contended(); return {};
    case Then::given_up: return {};
  }
  return {};
}

}  // namespace hapax::gate
