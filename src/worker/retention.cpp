#include "worker/retention.hpp"

#include <algorithm>
#include <utility>

#include "observe/log.hpp"
#include "worker/stoppable_wait.hpp"

namespace hapax::worker {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr std::size_t kBatch = 1000;    // keys at which one transaction looks
constexpr auto kBetweenBatches = 10ms;  // leaves the disk to the claims
constexpr auto kBetweenRounds = 10s;
constexpr auto kLease = 60s;  // renewed each round and each kBatchesPerLease batches
constexpr int kBatchesPerLease = 100;

// If PostgreSQL's clock is ahead of this machine's by more than this, this machine's clock decides.
constexpr auto kClocksDiffer = 5min;

// A round continues at the end of the one before. Once in this time a round looks at all keys, from
// the oldest. It finds keys that a claim had locked, and keys of scopes without a checkpoint.
constexpr auto kLookAtAll = 1h;

// If a partition holds keys for so long, that is logged.
constexpr auto kHeldLong = 1h;

}  // namespace

Retention::Retention(RetentionSetup setup)
    : setup_(std::move(setup)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Retention::run(const std::stop_token& stop) {
  bool said = false;
  while (!stop.stop_requested()) {
    try {
      serve(stop);
      said = false;
      worked_at_ = steady_clock::now();
    } catch (const store::DatabaseError& error) {
      // Keys that stay a while longer do no harm. Keys that stay for good fill the disk.
      if (!std::exchange(said, true))
        observe::log::warning("retention_delayed",
                              {{"sqlstate", error.sqlstate()}, {"error", error.what()}},
                              "expired keys could not be removed; trying again every 10 s");
      setup_.metrics.retention_behind(
          std::chrono::duration_cast<std::chrono::seconds>(steady_clock::now() - worked_at_));
    }
    wait_unless_stopped(stop, kBetweenRounds);
  }
}

void Retention::serve(const std::stop_token& stop) {
  store::Session session = setup_.connect();
  const store::ClockReading clock = read_clock(session);
  note_passed(session, clock.now);
  if (store::take_lease(session, "retention", setup_.worker_name, kLease))
    remove_expired(stop, session, clock.now);
  else
    setup_.metrics.retention_behind(0s);
}

// If a clock jumped days ahead, every key would expire at once. So PostgreSQL's clock counts only
// if this machine's clock agrees. That one must not jump while the process runs.
store::ClockReading Retention::read_clock(store::Session& session) {
  store::ClockReading clock = store::read_clock(session, own_time_.now(), kClocksDiffer);
  if (clock.ahead && !said_ahead_)
    observe::log::error("database_clock_ahead",
                        {{"database", clock.database}, {"by_us", clock.now}},
                        "PostgreSQL's clock is more than 5 minutes ahead of this machine's; keys "
                        "expire by this machine's until they agree");
  said_ahead_ = clock.ahead;
  return clock;
}

// Asks for the end of each log. Once the checkpoint has reached that end, records the time of
// asking.
void Retention::note_passed(store::Session& session, const std::string& now) {
  const auto held = setup_.held();
  std::erase_if(asked_, [&](const auto& one) {
    const auto found = held.find(one.first);
    return found == held.end() || found->second.epoch != one.second.epoch;
  });
  std::vector<store::TopicPartition> ask;
  for (const auto& [id, log] : held)
    if (!asked_.contains(id)) ask.push_back(id);
  if (!ask.empty()) {
    try {
      // `now` was read before the question. If the log ends below what the group has read, Kafka
      // has lost its end. Other records may stand below the checkpoint, and it proves nothing.
      for (const auto& [id, end] : setup_.ends(ask))
        if (const store::HeldLog& log = held.at(id); end >= log.checkpoint)
          asked_[id] = {id, log.epoch, end, now};
    } catch (const std::exception&) {
      // Kafka does not answer. The poll thread reports that. Until Kafka answers, keys are held.
    }
  }
  std::vector<store::LogEnd> ends;
  for (const auto& [id, end] : asked_) ends.push_back(end);
  for (const auto& id : store::note_passed(session, setup_.group, std::move(ends)))
    asked_.erase(id);
}

void Retention::remove_expired(const std::stop_token& stop, store::Session& session,
                               const std::string& now) {
  const auto held = store::read_held_scopes(session, now);
  std::chrono::seconds behind{0};
  for (const store::HeldScope& scope : held) behind = std::max(behind, scope.since);
  setup_.metrics.retention_behind(behind);
  const bool looks_at_all = steady_clock::now() >= look_at_all_;
  std::vector<store::HeldScope> moved;
  for (const store::HeldScope& scope : held) {
    say_held(scope);
    const auto [known, is_new] = removed_until_.try_emplace(scope.scope, kOldest);
    // The look at all keys that begins below removes these.
    if (is_new && looks_at_all && looked_until_ == kOldest) known->second = scope.until;
    // A partition of the scope was taken, and has not been looked at yet.
    if (scope.until == kOldest || known->second == scope.until) continue;
    moved.push_back(scope);
    moved.back().removed_until = known->second;
  }
  std::string from = kOldest;
  if (!moved.empty() && !remove(stop, session, from, moved)) return;
  for (const store::HeldScope& scope : moved) removed_until_[scope.scope] = scope.until;
  if (!looks_at_all || !remove(stop, session, looked_until_, held, now)) return;
  looked_until_ = kOldest;
  look_at_all_ = steady_clock::now() + kLookAtAll;
}

// Removes keys from `from` on, which moves with the keys that were looked at. False if it ended
// early.
bool Retention::remove(const std::stop_token& stop, store::Session& session, std::string& from,
                       const std::vector<store::HeldScope>& scopes,
                       const std::optional<std::string>& others) {
  for (int batch = 1; !stop.stop_requested(); ++batch) {
    if (batch % kBatchesPerLease == 0 &&
        !store::take_lease(session, "retention", setup_.worker_name, kLease))
      return false;
    const store::Removed removed = store::expire_keys(session, kBatch, from, scopes, others);
    if (removed.looked_at < kBatch) return true;
    from = removed.next;
    wait_unless_stopped(stop, kBetweenBatches);
  }
  return false;
}

void Retention::say_held(const store::HeldScope& scope) {
  const auto& [topic, partition] = scope.partition;
  if (scope.since < kHeldLong) {
    said_held_.erase(scope.scope);
    return;
  }
  const std::string who = scope.group + " " + topic + "/" + std::to_string(partition);
  if (std::exchange(said_held_[scope.scope], who) == who) return;
  observe::log::warning(
      "keys_held",
      {{"scope", scope.scope},
       {"group", scope.group},
       {"topic", topic},
       {"partition", partition},
       {"seconds", scope.since.count()}},
      "keys stay beyond their retention, because messages wait in this partition that may have "
      "them. If the group is gone for good: `hapax offsets forget-group`");
}

}  // namespace hapax::worker
