// Starts: where each partition begins is agreed with Kafka and PostgreSQL before it is fetched.
#include <algorithm>
#include <iterator>
#include <set>
#include <stdexcept>

#include "flow/crash_point.hpp"
#include "key/identity.hpp"
#include "observe/log.hpp"
#include "worker/keeper.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Bounds each question to Kafka; the group goes on polling meanwhile.
constexpr milliseconds kKafkaTimeout{5000};

// Partitions that are started together: few statements for all, and not much to do again.
constexpr std::size_t kStartsAtOnce = 100;

// After a start that could not be agreed.
constexpr milliseconds kStartAgain{500};

// Longer than brokers take to learn that they lead no more.
constexpr std::chrono::seconds kDoubted{10};

// Offsets, to look at the last record that was read before; further back another worker has read
// on.
constexpr std::int64_t kMostReadAgain = 1000;

// The thread of starts looks by itself whether a member without one shall look at its group.
constexpr milliseconds kStartsIdle{1000};

}  // namespace

// Each partition is tried twice a second.
void Keeper::start_delayed(const std::exception& error) {
  if (!delays_.is_due(error.what(), steady_clock::now())) return;
  observe::log::warning("start_delayed", {{"error", error.what()}},
                        "Kafka did not tell the offsets of partitions; trying again");
}

void Keeper::run_starts(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    serve_starts();
    look_at_group();
    look_at_logs();
    auto until = steady_clock::now() + kStartsIdle;
    std::unique_lock lock(mutex_);
    const std::size_t waiting = wanted_.size();
    for (const Wanted& wanted : wanted_) until = std::min(until, wanted.not_before);
    woken_.wait_until(lock, stop, until, [&] { return wanted_.size() != waiting || look_wanted_; });
  }
}

// Takes what is due, some at a time, and tries; what fails is put back for later. So what has begun
// stays begun if a rebalance or an error ends the rest.
void Keeper::serve_starts() {
  std::vector<std::shared_ptr<Partition>> due;
  bool none = true;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(wanted_, [](const Wanted& wanted) { return wanted.partition->over(); });
    none = wanted_.empty();
    for (const Wanted& wanted : wanted_)
      if (wanted.not_before <= steady_clock::now() && due.size() < kStartsAtOnce)
        due.push_back(wanted.partition);
    const std::set<std::shared_ptr<Partition>> taken(due.begin(), due.end());
    std::erase_if(wanted_, [&](const Wanted& wanted) { return taken.contains(wanted.partition); });
  }
  if (none) starts_session_.reset();
  if (due.empty()) return;
  try {
    start(due);
    return;
  } catch (const store::DatabaseError& error) {
    starts_session_.reset();
    broke("agreeing on the start of partitions", error);
  } catch (const std::exception& error) {
    start_delayed(error);
    for (const auto& partition : due) partition->delayed(error.what());
  }
  std::erase_if(due, [&](const auto& partition) {
    const std::lock_guard lock(mutex_);
    const auto held = held_.find(partition->id());  // an older one may stand there
    return held != held_.end() && held->second == partition;
  });
  acquire(due, kStartAgain);
}

// Kafka's offset says that another store is ahead. Once a decision is used up, that would halt.
bool Keeper::is_anothers(const StartFacts& facts) {
  return facts.provenance && facts.provenance->cluster_id == facts.cluster_id &&
         facts.provenance->store_id != facts.store_id;
}

// The starts, agreed on both sides before anything is fetched: decided for all, taken in
// PostgreSQL, first ones committed to Kafka, written to PostgreSQL. A kill between any two steps
// finds its way: a start that PostgreSQL does not know yet is found in Kafka, with our provenance.
void Keeper::start(const std::vector<std::shared_ptr<Partition>>& partitions) {
  const store::StoreIdentity store = store::read_store(session(starts_session_));
  std::string cluster = consumer_.cluster_id(kKafkaTimeout);
  {
    const std::lock_guard lock(mutex_);
    store_ = store;
    cluster_id_ = std::move(cluster);
  }
  std::vector<Starting> starting = decide(partitions);
  take(starting);
  flow::crash_point("taken");
  std::vector<kafka::Commit> first;
  for (const Starting& one : starting)
    if (one.at.first || is_anothers(one.facts))
      first.push_back({one.partition->id(), one.at.offset, -1, provenance(one).text()});
  std::map<TopicPartition, std::string> refused;
  if (!first.empty()) refused = consumer_.commit_and_wait(first, kKafkaTimeout);
  flow::crash_point("start_committed");
  for (const auto& [id, why] : refused)
    start_delayed(std::runtime_error("the group's offset for " + id.first + "/" +
                                     std::to_string(id.second) + " was not taken: " + why));
  std::vector<std::shared_ptr<Partition>> again;
  std::erase_if(starting, [&](const Starting& one) {
    if (!refused.contains(one.partition->id())) return false;
    again.push_back(one.partition);
    return true;
  });
  agree(starting, store.incarnation, again);
  acquire(again, kStartAgain);
  flow::crash_point("start_agreed");
}

// What stands in the way of each is posted as HaltWanted; the rest may start.
std::vector<Keeper::Starting> Keeper::decide(
    const std::vector<std::shared_ptr<Partition>>& partitions) {
  std::vector<store::Halt> halts = unrecorded();  // before the others: it may become one of them
  for (store::Halt& halt : halts) halt.since = "just now";
  std::ranges::move(store::read_halts(session(starts_session_), setup_.group),
                    std::back_inserter(halts));
  std::vector<std::shared_ptr<Partition>> may_start;
  for (const auto& partition : partitions)
    if (!partition->over() && !is_stopped(partition, halts)) may_start.push_back(partition);
  if (may_start.empty()) return {};
  const Known known = ask(may_start);
  std::vector<Starting> starting;
  for (auto partition = may_start.begin(); partition != may_start.end(); ++partition) {
    if ((*partition)->over()) continue;
    try {
      if (auto one = decide(*partition, known)) starting.push_back(std::move(*one));
    } catch (const store::DatabaseError&) {
      throw;
    } catch (const std::exception& error) {
      (*partition)->short_since.reset();  // what was doubted was not confirmed
      start_delayed(error);
      (*partition)->delayed(error.what());
      acquire({*partition}, kStartAgain);
      if (!known.was_asked_alone((*partition)->id())) continue;
      // A broker that does not answer took long: those that are decided start first.
      acquire({std::next(partition), may_start.end()}, {});
      break;
    }
  }
  return starting;
}

// By a halt that stands already, or by the database.
bool Keeper::is_stopped(const std::shared_ptr<Partition>& partition,
                        const std::vector<store::Halt>& halts) {
  const TopicPartition& id = partition->id();
  const auto open =
      std::ranges::find_if(halts, [&](const store::Halt& other) { return other.stops(id); });
  if (open != halts.end()) {
    notices_.post(HaltWanted{partition, *open, true});
    return true;
  }
  if (!store_.copied) return false;
  store::Halt halt = halt_of(*partition);
  halt.reason = "store_copied";
  halt.detail = "the database is a copy: hapax.store was " + store_.facts;
  notices_.post(HaltWanted{partition, halt, false});
  return true;
}

store::Halt Keeper::halt_of(const Partition& partition) const {
  return {0,  partition.id().first, partition.id().second, false, 1, {}, {}, {},
          {}, setup_.worker_name};
}

// Few questions for all of them. What one broker does not answer is asked again for each.
Keeper::Known Keeper::ask(const std::vector<std::shared_ptr<Partition>>& partitions) {
  Known known;
  std::vector<TopicPartition> ids;
  for (const auto& partition : partitions) ids.push_back(partition->id());
  // Before the ends of the logs, so that no other group can be further than those.
  std::vector<TopicPartition> of_coordinates;
  for (const auto& partition : partitions)
    if (key::may_be_coordinates(partition->route().key)) of_coordinates.push_back(partition->id());
  known.logs = store::read_logs(session(starts_session_), setup_.group, of_coordinates);
  known.committed = consumer_.committed(ids, kKafkaTimeout);
  try {
    known.ranges = consumer_.ranges(ids, kKafkaTimeout);
  } catch (const std::exception& error) {
    start_delayed(error);
  }
  std::set<std::string> topics;
  for (const TopicPartition& id : ids) topics.insert(id.first);
  for (const std::string& topic : topics) {
    try {
      known.topic_ids[topic] = consumer_.topic_id(topic, kKafkaTimeout);
    } catch (const std::exception& error) {
      start_delayed(error);
    }
  }
  known.rows = store::read_checkpoints(session(starts_session_), setup_.group, ids);
  return known;
}

std::optional<Keeper::Starting> Keeper::decide(const std::shared_ptr<Partition>& partition,
                                               const Known& known) {
  const TopicPartition& id = partition->id();
  StartFacts facts = facts_of(*partition, known);
  // Whether it is the same topic would go unasked.
  if (facts.row && facts.row->topic_id && facts.topic_id.empty() && kafka::can_tell_topic_ids())
    throw std::runtime_error("Kafka does not tell the id of topic " + id.first);
  const auto decision = decide_start(facts);
  if (const auto* refused = std::get_if<StartHalt>(&decision)) {
    if (may_be_outdated(*partition, *refused)) {
      acquire({partition}, kStartAgain);
      return std::nullopt;
    }
    store::Halt halt = halt_of(*partition);
    halt.generation = facts.row ? facts.row->generation : 1;
    if (refused->generation > 0) halt.generation = refused->generation;
    halt.reason = refused->reason;
    halt.detail = refused->detail;
    notices_.post(HaltWanted{partition, halt, false});
    return std::nullopt;
  }
  return Starting{partition, std::move(facts), std::get<StartAt>(decision), {}};
}

// A broker that stood still may still take itself for the leader, and lack what its followers have
// by now. So a log that seems to end too early must seem so for a while.
bool Keeper::may_be_outdated(Partition& partition, const StartHalt& halt) {
  if (!halt.is_of_short_log) return false;
  const auto& [topic, number] = partition.id();
  const auto now = steady_clock::now();
  if (!partition.short_since) {
    partition.short_since = now;
    observe::log::warning("start_doubted", {{"topic", topic}, {"partition", number}},
                          halt.detail + "; asking for ten seconds whether that is so");
  }
  if (now - *partition.short_since >= kDoubted) return false;
  consumer_.partition_count(topic, kKafkaTimeout);  // the answer names the leader anew
  return true;
}

StartFacts Keeper::facts_of(const Partition& partition, const Known& known) {
  const TopicPartition& id = partition.id();
  const auto found = known.committed.find(id);
  if (found == known.committed.end())
    throw std::runtime_error("Kafka does not tell the group's offset for " + id.first + "/" +
                             std::to_string(id.second));
  const auto topic_id = known.topic_ids.find(id.first);
  if (topic_id == known.topic_ids.end())
    throw std::runtime_error("Kafka does not tell the id of topic " + id.first);
  const kafka::Committed& committed = found->second;
  const auto told = known.ranges.find(id);
  const kafka::OffsetRange range =
      told != known.ranges.end() ? told->second : consumer_.range(id, kKafkaTimeout);
  StartFacts facts;
  facts.committed = committed.offset;
  if (committed.offset) facts.provenance = kafka::Provenance::parse(committed.metadata);
  facts.low = range.low;
  facts.high = range.high;
  facts.reached = partition.reached;
  facts.cluster_id = cluster_id();
  facts.topic_id = topic_id->second;
  if (const auto row = known.rows.find(id); row != known.rows.end()) facts.row = row->second;
  facts.store_id = store_id();
  facts.key_spec = key::spec_digest(partition.route().key);
  facts.initial_latest = setup_.initial_latest;
  facts.earliest_when_out_of_range = setup_.earliest_when_out_of_range;
  facts.key_may_be_coordinates = key::may_be_coordinates(partition.route().key);
  facts.scope = partition.route().key.scope;
  if (const auto logs = known.logs.find(id); logs != known.logs.end())
    facts.known_logs = logs->second;
  return facts;
}

// Raises the epoch of each; one that somebody took meanwhile is left for later.
void Keeper::take(std::vector<Starting>& starting) {
  std::vector<store::Taking> takings;
  for (const Starting& one : starting) {
    if (one.partition->over()) continue;
    takings.push_back(taking_of(*one.partition));
    takings.back().read_epoch = one.facts.row ? one.facts.row->epoch : 0;
  }
  const auto taken = store::take_partitions(session(starts_session_), takings);
  std::erase_if(starting, [&](Starting& one) {
    const auto found = taken.find(one.partition->id());
    if (found == taken.end()) {
      if (!one.partition->over()) acquire({one.partition}, kStartAgain);
      return true;
    }
    one.taken = found->second;
    return false;
  });
}

// Those that are not ours any more go to `again`; those that the group has taken away never began.
void Keeper::agree(std::vector<Starting>& starting, const std::string& incarnation,
                   std::vector<std::shared_ptr<Partition>>& again) {
  std::erase_if(starting, [](const Starting& one) { return one.partition->over(); });
  std::vector<store::Starting> starts;
  std::vector<store::Standing> standings;
  for (const Starting& one : starting) {
    const StartFacts& facts = one.facts;
    auto from = facts.row ? facts.row->next_offset : std::nullopt;
    if (one.at.jump == store::Jump::log_start) from = one.at.offset - one.at.gap;
    starts.push_back(
        {taking_of(*one.partition),
         {one.taken.epoch, one.at.offset, facts.cluster_id, facts.topic_id, one.at.generation, from,
          one.at.jump, one.at.guard_below, one.at.learns_log, facts.known_logs}});
    standings.push_back({one.partition->id(), one.at.generation, one.at.offset});
  }
  const auto highest = store::agree_starts(session(starts_session_), std::move(starts));
  auto ahead = store::read_ahead(session(starts_session_), setup_.group, standings);
  for (const Starting& one : starting) {
    const auto found = highest.find(one.partition->id());
    if (found == highest.end())
      again.push_back(one.partition);
    else
      begin(one, incarnation, found->second, std::move(ahead[one.partition->id()]));
  }
}

void Keeper::begin(const Starting& starting, const std::string& incarnation, std::int64_t highest,
                   store::Ahead ahead) {
  const std::shared_ptr<Partition>& partition = starting.partition;
  const StartFacts& facts = starting.facts;
  const bool key_changed = facts.row && facts.row->next_offset && !facts.row->key_spec.empty() &&
                           facts.row->key_spec != facts.key_spec;
  if (key_changed)
    observe::log::warning(
        "key_changed", {{"topic", partition->id().first}, {"partition", partition->id().second}},
        "the key, tenant or scope of this route is another one since this partition was drained: "
        "whatever a producer sends again of before then is no duplicate any more, and runs");
  if (starting.at.gap > 0)
    observe::log::error("messages_lost",
                        {{"topic", partition->id().first},
                         {"partition", partition->id().second},
                         {"messages", starting.at.gap}},
                        "Kafka deleted messages before they were processed; going on at the "
                        "earliest, because kafka.out_of_range is earliest");
  Beginning beginning;
  beginning.epoch = starting.taken.epoch;
  beginning.started_runs = starting.taken.started_runs;
  beginning.incarnation = incarnation;
  beginning.topic_id = facts.topic_id;
  beginning.has_kafka_offset =
      facts.committed.has_value() || starting.at.first || is_anothers(facts);
  beginning.generation = starting.at.generation;
  beginning.offset = starting.at.offset;
  beginning.log_end = facts.high;
  beginning.settled_before = settled_before(facts, starting.at);
  beginning.guard_below = highest;
  beginning.ahead = std::move(ahead);
  const std::optional<ReadRecord>& before = partition->read_before;
  if (before && (before->generation != beginning.generation || before->offset < facts.low ||
                 before->offset + kMostReadAgain < beginning.offset))
    partition->read_before.reset();
  partition->begin(std::move(beginning));
  {
    const std::lock_guard lock(mutex_);
    held_[partition->id()] = partition;
  }
  // Taken away meanwhile, and perhaps too late for the release: nothing of it has run.
  if (partition->over()) {
    const store::Leaving leaving{partition->id(), partition->beginning().epoch, incarnation,
                                 partition->progress().highest_settled};
    store::leave_partitions(session(starts_session_), setup_.group, {leaving});
  }
  notices_.post(Started{partition});
}

kafka::Provenance Keeper::provenance(const Starting& starting) const {
  return {store_id(), cluster_id(), starting.taken.epoch, starting.at.first};
}

}  // namespace hapax::worker
