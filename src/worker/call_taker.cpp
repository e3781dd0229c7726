#include "worker/call_taker.hpp"

#include <algorithm>

#include "flow/call_account.hpp"
#include "flow/crash_point.hpp"
#include "flow/judge.hpp"
#include "flow/verdicts.hpp"
#include "key/identity.hpp"
#include "store/worker/wal_position.hpp"

namespace hapax::worker {
namespace {

using flow::Outcome;
using outside::Step;
using std::chrono::milliseconds;

milliseconds age_of(const Message& message) {
  const auto sent = message.timestamp();
  if (!sent) return milliseconds(0);
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now() - *sent);
}

}  // namespace

// Keys may be taken a little before a thread is free, but not if that could make their calls
// doubtful. If lanes book more slowly than the other side answers, calls wait for them.
std::size_t CallTaker::room(std::size_t route) {
  const std::size_t threads = parts_.in_flight.threads(route);
  if (threads == 0) return 0;
  if (parts_.accounts.waiting(route) > 2 * threads) {
    waits_for_lanes_ = true;
    return 0;
  }
  const bool is_repeatable = parts_.routes[route].outside->repeat != config::Repeat::never;
  const std::size_t capacity = threads + (is_repeatable ? threads / 8 : 0);
  return capacity - std::min(capacity, parts_.ends.of_route(route));
}

void CallTaker::take() {
  waits_for_lanes_ = false;
  Dispatcher::Calls calls =
      parts_.setup.dispatcher.take_calls([this](std::size_t route) { return room(route); });
  if (calls.works.empty()) return;
  Flights flights;
  for (Work& work : calls.works) {
    const flow::Task task = task_of(parts_.setup, work, work.items.front(), calls.cautious);
    flights.emplace_back(std::move(work), task);
    parts_.ends.entered(flights.back());
  }
  try {
    prepare(flights);
    take_keys(flights, calls.cautious);
    see_position(flights);
    for (auto flight = flights.begin(); flight != flights.end();) {
      const auto current = flight++;
      if (current->taken.token == 0)
        parts_.ends.pass_to_lane(flights, current);
      else
        begin(flights, current);
    }
  } catch (const store::DatabaseError& error) {
    for (auto flight = flights.begin(); flight != flights.end();) {
      if (flight->taken.token != 0) parts_.ends.leave(*flight, true);
      flight = parts_.ends.settle(flights, flight, flow::away(error.what()));
    }
    throw;
  }
  // Messages that needed no call have left room, and nothing else wakes this thread.
  parts_.setup.dispatcher.wake_calls();
}

// If another holder calls a message's key, the message waits. If a key is not taken for another
// reason, its flight has no token.
void CallTaker::take_keys(Flights& flights, bool alone) {
  if (flights.empty()) return;
  std::vector<store::CallRequest> requests;
  for (const Flight& flight : flights) {
    requests.push_back({flight.claim(), alone});
    flight.work.partition->may_have_begun(flight.task.message.offset());
  }
  std::vector<store::Take> takes;
  try {
    takes = store::take_calls(*parts_.session, parts_.holder.id, requests);
  } catch (const store::DatabaseError&) {
    for (Flight& flight : flights) parts_.ends.leave(flight, true);
    throw;
  }
  flow::crash_point("call_taken");
  auto take = takes.begin();
  for (auto flight = flights.begin(); flight != flights.end(); ++take) {
    if (take->is_held) {
      // An earlier take left it, whose COMMIT came after the key had been given back. If the server
      // lost commits, it is not known what it has forgotten of that key.
      if (take->is_own) parts_.ends.leave(*flight, false);
      flight = parts_.ends.settle(
          flights, flight, flow::to_call("key_started", flight->task.attempts, flow::kKeyHeldWait));
    } else {
      if (take->taken) flight->taken = *take->taken;
      ++flight;
    }
  }
}

// If PostgreSQL loses a take, this process shall see it, also if no checkpoint has moved since.
void CallTaker::see_position(const Flights& flights) {
  const auto is_taken = [](const Flight& one) { return one.taken.token != 0; };
  if (std::ranges::none_of(flights, is_taken)) return;
  const auto position = store::read_wal_position(*parts_.session);
  if (!position) return;
  for (const Flight& flight : flights)
    if (is_taken(flight))
      flight.work.partition->saw({*position, std::string(flight.task.incarnation)});
}

// Derives keys. If a message needs no call, or must be judged first, it goes to a lane.
void CallTaker::prepare(Flights& flights) {
  for (auto flight = flights.begin(); flight != flights.end();) {
    const flow::Task& task = flight->task;
    if (task.breaker->is_open()) {
      flight = parts_.ends.settle(flights, flight, flow::held());
      continue;
    }
    key::Derived derived = key::identify(task.route.key, task.message, task.generation);
    auto* const identity = std::get_if<key::Identity>(&derived);
    if (task.skip != nullptr || identity == nullptr) {
      flight = parts_.ends.pass_to_lane(flights, flight);
      continue;
    }
    flight->identity = std::move(*identity);
    std::string key = outside::key_to_hand_on(task.route.key.scope, flight->identity);
    if (!parts_.holder.keys.add(key)) {
      flight = parts_.ends.settle(flights, flight,
                                  flow::to_call("key_started", task.attempts, flow::kKeyHeldWait));
      continue;
    }
    flight->key = std::move(key);
    if (std::string why; !parts_.session.is_reachable(why))
      throw store::DatabaseError({store::Fault::Kind::connection, "", why});
    if (parts_.session.is_behind_a_loss(task.incarnation))
      flight = parts_.ends.settle(flights, flight, flow::later("tail_lost", task.attempts));
    else
      flight = is_for_lane(*flight) ? parts_.ends.pass_to_lane(flights, flight) : std::next(flight);
  }
  // The last message may have dropped the session.
  if (std::string why; !flights.empty() && !parts_.session.is_reachable(why))
    throw store::DatabaseError({store::Fault::Kind::connection, "", why});
}

// Whether it is remembered, or must be and is not: a lane finds that out from its key, too. Or
// whether it violates a schema, unless its call began before the schema was there.
bool CallTaker::is_for_lane(Flight& flight) {
  const flow::Task& task = flight.task;
  const bool is_below = task.message.offset() < task.guard_below;
  const bool violates = flow::violation(task).has_value();
  const bool is_of_outbox = task.message.header("hapax-origin").has_value();
  if (!task.may_be_known() && !violates && !is_of_outbox) return false;
  // A key that is known tells more than coordinates.
  const auto holder = store::read_holder(*parts_.session, flight.claim());
  if (violates) return !holder || !store::is_begun_call(*holder);
  if (is_of_outbox && holder) {
    store::Transaction transaction(*parts_.session);
    const bool was_given_up = holder->status == "failed" ||
                              store::rest_of(transaction, flight.claim()) != store::Rest::none;
    if (was_given_up && flow::is_copy_of_given_up(task, flight.claim(), *holder, transaction))
      return true;
  }
  if (!task.may_be_known()) return false;
  if (holder && holder->status != "failed") return false;
  store::Transaction transaction(*parts_.session);
  const store::Known known = store::known_coordinates(transaction, flight.source,
                                                      task.route.key.scope, task.route.retention);
  return known.dead_letter || (is_below && !known.attempted);
}

// Does what the policy plans for a key that is ours now.
void CallTaker::begin(Flights& flights, Flights::iterator flight) {
  const flow::Task& task = flight->task;
  store::TakenCall& taken = flight->taken;
  outside::History history{taken.calls, taken.crashes, taken.age, taken.answer.has_value()};
  if (task.message.offset() < task.doubt_below)
    history = outside::in_doubt(history, age_of(task.message));
  taken.calls = history.calls;
  flow::Attempt attempt(task, parts_.session, random_, flight->identity);
  auto next = flow::next_step(attempt, taken, history);
  if (auto* const ended = std::get_if<Outcome>(&next)) {
    // An open call that an earlier process left is no sign of a broken deploy.
    parts_.ends.settle(flights, flight, std::move(*ended), false);
  } else if (const Step step = std::get<Step>(next); step == Step::book) {
    flight->item().answered = parts_.accounts.answered(flight->route(), taken.token, *taken.answer);
    parts_.ends.pass_to_lane(flights, flight);
  } else {
    flight->message = &task.message;
    flight->scope = task.route.key.scope;
    flight->token = taken.token;
    flight->holder = parts_.holder.id;
    flight->step = step;
    flight->max_duration = flight->rules().max_duration;
    parts_.accounts.began(flight->route());
    parts_.ends.began(*flight);
    parts_.in_flight.begin(flights, flight);
  }
}

}  // namespace hapax::worker
