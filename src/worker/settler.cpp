#include "worker/settler.hpp"

#include <algorithm>

#include "flow/verdicts.hpp"
#include "observe/log.hpp"
#include "payload/reading.hpp"
#include "traces/carried.hpp"

namespace hapax::worker {
namespace {

using flow::Outcome;
using flow::Result;
using std::chrono::milliseconds;

// Serialization failures and deadlocks run again at once, kMaxAgains times; then they wait, too. A
// message that met a locked row has waited for it with its lane, so it waits without one now.
using flow::kMaxAgains;
constexpr milliseconds kAgainsWait{1000};

constexpr std::chrono::minutes kLongWait{1};

observe::SettledAs settled_as(Result result) {
  switch (result) {
    case Result::duplicate: return observe::SettledAs::duplicate;
    case Result::failed: return observe::SettledAs::failed;
    case Result::skipped: return observe::SettledAs::skipped;
    default: return observe::SettledAs::completed;
  }
}

// How long the message and its order key wait. Also keeps in the item what the next run must know.
milliseconds wait_after(Item& item, const Outcome& outcome) {
  if (outcome.result == Result::retry) {
    item.attempts = outcome.attempts;
    item.outages = std::min(item.outages, flow::kMaxOutages - 1);  // the next one counts again
  } else if (outcome.lost_in_handler) {
    ++item.outages;
  }
  item.attempts = std::max(item.attempts, outcome.attempts);  // counted, and not given up yet
  if (outcome.result != Result::waits) item.announced = outcome.announced;
  item.crashes = std::max(item.crashes, outcome.crashes);
  if (outcome.to_call) {
    item.for_lane = false;
    item.answered.reset();
  }
  item.agains = outcome.result == Result::again ? item.agains + 1 : 0;
  // The message stays first of its order key, so no later one passes it before the halt is served.
  if (flow::is_halt(outcome.result)) return std::chrono::hours(24);
  if (item.agains >= kMaxAgains || outcome.reason == flow::kRowHeld) return kAgainsWait;
  // Each waits for another time, because otherwise the same two would collide again.
  if (item.agains > 0) return milliseconds(item.agains * (1 + item.record->message().offset() % 7));
  return outcome.wait;
}

}  // namespace

bool Settler::settle(std::span<Work> works, std::span<const Outcome> outcomes,
                     Clock::time_point now, const traces::Trace* trace) {
  trace_ = trace;
  bool postgres_away = false;
  for (Work& work : works) {
    const auto of_work = outcomes.first(work.items.size());
    outcomes = outcomes.subspan(work.items.size());
    postgres_away = settle_one(work, of_work, now) || postgres_away;
    const bool more_of_it = &work != &works.back() && (&work)[1].partition == work.partition;
    if (!more_of_it) tell(*work.partition);
  }
  return postgres_away;
}

// Reports all settled messages at once, because the poll thread needs the partition's lock, too.
void Settler::tell(Partition& partition) {
  partition.settle(settled_);
  settled_.clear();
}

bool Settler::settle_one(Work& work, std::span<const Outcome> outcomes, Clock::time_point now) {
  auto item = work.items.begin();
  auto outcome = outcomes.begin();
  for (; item != work.items.end() && flow::is_settled(outcome->result); ++item, ++outcome) {
    count(work, *item, *outcome);
    watch_for_breaks(work, *item, *outcome);
    settled_.push_back({item->record->message().offset(), item->record->bytes()});
    if (setup_.settled) setup_.settled(item->record->message());
    ++work.settled;
  }
  if (item == work.items.end()) return false;
  for (auto [left, its] = std::pair(item, outcome); left != work.items.end(); ++left, ++its)
    if (its->in_doubt) {
      left->in_doubt = true;
      work.partition->may_have_begun(left->record->message().offset());
    }
  count(work, *item, *outcome);
  tell_of_wait(work, *item, *outcome, now);
  if (flow::is_halt(outcome->result)) {
    tell(*work.partition);
    ask_for_halt(work, *item, *outcome);
  }
  const bool postgres_away = outcome->result == Result::outage;
  if (postgres_away && !store::may_be_a_lost_session(outcome->sqlstate))
    setup_.postgres.went_down("processing a message", outcome->sqlstate, outcome->detail);
  item->not_before = now + wait_after(*item, *outcome);
  return postgres_away;
}

// A wait is no attempt, so nothing else tells of it. A registry's is told at once, and by its own
// log lines.
void Settler::tell_of_wait(const Work& work, Item& item, const Outcome& outcome,
                           Clock::time_point now) {
  const Coordinates& at = item.record->message().coordinates();
  const bool on_registry = outcome.reason == payload::kRegistry;
  if (on_registry) work.partition->set_waits_for(at.offset, outcome.detail);
  const bool waits = outcome.result == Result::busy || outcome.reason == flow::kRowHeld;
  if (!waits || on_registry) {
    const bool may_be_told = item.wait_told || work.partition->route().payload != nullptr;
    if (may_be_told && !on_registry) work.partition->set_waits_for(at.offset, {});
    item.waits_since = {};
    item.wait_told = false;
    return;
  }
  if (item.waits_since == Clock::time_point{}) item.waits_since = now;
  if (now - item.waits_since < kLongWait) return;
  // Each time, because a lower message that waited may be settled meanwhile.
  work.partition->set_waits_for(at.offset, "offset " + std::to_string(at.offset) + " waits (" +
                                               outcome.reason + "); see `hapax explain`");
  if (std::exchange(item.wait_told, true)) return;
  observe::log::warning("message_waits",
                        {{"topic", at.topic},
                         {"partition", at.partition},
                         {"offset", at.offset},
                         {"reason", outcome.reason}},
                        "a message has waited for a minute, and no attempt was counted; `hapax "
                        "explain TOPIC/PARTITION/OFFSET` tells for what");
}

void Settler::ask_for_halt(const Work& work, const Item& item, const Outcome& outcome) {
  store::Halt halt = halt_of(*work.partition, setup_.worker_name);
  halt.whole_route = outcome.result == Result::halt_route;
  if (!outcome.of_batch) halt.offset = item.record->message().offset();
  halt.reason = outcome.reason;
  halt.detail = outcome.detail;
  setup_.notices.post(HaltWanted{.partition = work.partition, .halt = halt});
}

void Settler::watch_for_breaks(const Work& work, const Item& item, const Outcome& outcome) {
  if (outcome.result != Result::failed) return;
  const auto cause = setup_.breakers[work.partition->route_index()].take_cause();
  if (!cause) return;
  store::Halt halt = halt_of(*work.partition, setup_.worker_name);
  halt.whole_route = true;
  halt.reason = "breaker";
  halt.detail =
      "as many messages in a row as routes[].breaker allows were given up on for one cause: " +
      *cause + "; the last is offset " + std::to_string(item.record->message().offset()) +
      ", see `hapax dead list`";
  setup_.notices.post(HaltWanted{.partition = work.partition, .halt = halt});
}

void Settler::count(const Work& work, const Item& item, const Outcome& outcome) {
  log_outcome(work, item, outcome);
  observe::RouteMetrics& route = route_metrics_[work.partition->route_index()];
  if (outcome.handler_time.count() > 0) route.handler_ran(outcome.handler_time);
  if (outcome.result == Result::completed || outcome.result == Result::retry)
    work.partition->count_handler_run();
  if (flow::is_settled(outcome.result)) {
    route.settled(settled_as(outcome.result));
    if (outcome.result == Result::failed && outcome.reason != flow::kRedelivered)
      route.dead_lettered(outcome.reason);
  } else if (outcome.result == Result::retry) {
    route.attempted();
  } else if (outcome.result == Result::again && outcome.reason == "serialization") {
    setup_.metrics.serialization_retried();
  }
}

// Logs no detail by default, because it may quote the message. `hapax dead show` and `status` have
// it.
void Settler::log_outcome(const Work& work, const Item& item, const Outcome& outcome) const {
  const std::string_view handler = work.partition->route().handler.name;
  std::optional<std::string_view> error;
  if (setup_.log_error_text)
    error = std::string_view(outcome.detail).substr(0, outcome.detail.find('\n'));
  const Coordinates& at = item.record->message().coordinates();
  const auto trace_id = [&] { return traces::Carried(item.record->message(), trace_).trace_id(); };
  if (outcome.result == Result::failed && outcome.reason != flow::kRedelivered) {
    observe::log::warning("dead_letter",
                          {{"topic", at.topic},
                           {"partition", at.partition},
                           {"offset", at.offset},
                           {"dead_letter", outcome.dead_letter},
                           {"handler", handler},
                           {"reason", outcome.reason},
                           {"sqlstate", outcome.sqlstate},
                           {"error", error},
                           {"attempts", outcome.attempts},
                           {"trace_id", trace_id()}},
                          "gave a message up; it is kept whole in hapax.dead_letters");
  } else if (outcome.result == Result::retry) {
    observe::log::warning("attempt_failed",
                          {{"topic", at.topic},
                           {"partition", at.partition},
                           {"offset", at.offset},
                           {"handler", handler},
                           {"sqlstate", outcome.sqlstate},
                           {"error", error},
                           {"attempts", outcome.attempts},
                           {"next_try_ms", outcome.wait.count()},
                           {"trace_id", trace_id()}},
                          "a message failed and waits; `hapax status` shows the error");
  } else if (outcome.result == Result::again && item.agains + 1 == kMaxAgains) {
    observe::log::warning("contended",
                          {{"topic", at.topic},
                           {"partition", at.partition},
                           {"offset", at.offset},
                           {"sqlstate", outcome.sqlstate},
                           {"trace_id", trace_id()}},
                          "a message was run again many times for serialization failures, "
                          "deadlocks or locked rows, and waits longer now");
  }
}

}  // namespace hapax::worker
