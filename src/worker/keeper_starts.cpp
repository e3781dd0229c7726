// Starts: where each partition begins is agreed with Kafka and PostgreSQL before it is fetched.
#include <algorithm>
#include <iterator>
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

// After a start that could not be agreed.
constexpr milliseconds kStartAgain{500};

// Longer than brokers take to learn that they lead no more.
constexpr std::chrono::seconds kDoubted{10};

// Offsets, to look at the last record that was read before; further back another worker has read
// on.
constexpr std::int64_t kMostReadAgain = 1000;

// The thread of starts looks by itself whether a member without one shall look at its group.
constexpr milliseconds kStartsIdle{1000};

void start_delayed(const std::exception& error) {
  observe::log::warning("start_delayed", {{"error", error.what()}},
                        "Kafka did not tell the offsets of partitions; trying again");
}

}  // namespace

void Keeper::run_starts(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    serve_starts();
    look_at_group();
    auto until = steady_clock::now() + kStartsIdle;
    std::unique_lock lock(mutex_);
    const std::size_t waiting = wanted_.size();
    for (const Wanted& wanted : wanted_) until = std::min(until, wanted.not_before);
    woken_.wait_until(lock, stop, until, [&] { return wanted_.size() != waiting; });
  }
}

// Takes what is due and tries; what fails is put back for later.
void Keeper::serve_starts() {
  std::vector<std::shared_ptr<Partition>> due;
  bool none = true;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(wanted_, [](const Wanted& wanted) { return wanted.partition->over(); });
    none = wanted_.empty();
    for (const Wanted& wanted : wanted_)
      if (wanted.not_before <= steady_clock::now()) due.push_back(wanted.partition);
    std::erase_if(wanted_, [&](const Wanted& wanted) {
      return std::ranges::find(due, wanted.partition) != due.end();
    });
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
  for (const Starting& one : starting)
    if (refused.contains(one.partition->id()) || !agree(one, store.incarnation))
      acquire({one.partition}, kStartAgain);
  flow::crash_point("start_agreed");
}

// What stands in the way of each is posted as HaltWanted; the rest may start. Behind one that Kafka
// does not answer for, which may have taken long, those that are decided start first.
std::vector<Keeper::Starting> Keeper::decide(
    const std::vector<std::shared_ptr<Partition>>& partitions) {
  std::vector<store::Halt> halts = unrecorded();  // before the others: it may become one of them
  for (store::Halt& halt : halts) halt.since = "just now";
  std::ranges::move(store::read_halts(session(starts_session_), setup_.group),
                    std::back_inserter(halts));
  std::vector<TopicPartition> ids;
  for (const auto& partition : partitions) ids.push_back(partition->id());
  const auto committed = consumer_.committed(ids, kKafkaTimeout);
  std::map<std::string, std::string> topic_ids;
  std::vector<Starting> starting;
  for (auto partition = partitions.begin(); partition != partitions.end(); ++partition) {
    if ((*partition)->over()) continue;
    try {
      if (auto one = decide(*partition, halts, committed, topic_ids))
        starting.push_back(std::move(*one));
    } catch (const store::DatabaseError&) {
      throw;
    } catch (const std::exception& error) {
      (*partition)->short_since.reset();  // what was doubted was not confirmed
      start_delayed(error);
      acquire({std::next(partition), partitions.end()});
      acquire({*partition}, kStartAgain);
      break;
    }
  }
  return starting;
}

std::optional<Keeper::Starting> Keeper::decide(
    const std::shared_ptr<Partition>& partition, const std::vector<store::Halt>& halts,
    const std::map<TopicPartition, kafka::Committed>& committed,
    std::map<std::string, std::string>& topic_ids) {
  const TopicPartition& id = partition->id();
  store::Halt halt{0, id.first, id.second, false, 1, {}, {}, {}, {}, setup_.worker_name};
  const auto open =
      std::ranges::find_if(halts, [&](const store::Halt& other) { return other.stops(id); });
  if (open != halts.end()) {
    notices_.post(HaltWanted{partition, *open, true});
    return std::nullopt;
  }
  if (store_.copied) {
    halt.reason = "store_copied";
    halt.detail = "the database is a copy: hapax.store was " + store_.facts;
    notices_.post(HaltWanted{partition, halt, false});
    return std::nullopt;
  }
  auto topic_id = topic_ids.find(id.first);
  if (topic_id == topic_ids.end())
    topic_id = topic_ids.emplace(id.first, consumer_.topic_id(id.first, kKafkaTimeout)).first;
  const auto found = committed.find(id);
  if (found == committed.end())
    throw std::runtime_error("Kafka does not tell the group's offset for " + id.first + "/" +
                             std::to_string(id.second));
  StartFacts facts = facts_of(*partition, found->second, topic_id->second);
  const auto decision = decide_start(facts);
  if (const auto* refused = std::get_if<StartHalt>(&decision)) {
    if (may_be_outdated(*partition, *refused)) {
      acquire({partition}, kStartAgain);
      return std::nullopt;
    }
    halt.generation = facts.row ? facts.row->generation : 1;
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
  if (halt.reason != std::string_view("offset_above_end")) return false;
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

StartFacts Keeper::facts_of(const Partition& partition, const kafka::Committed& committed,
                            const std::string& topic_id) {
  const TopicPartition& id = partition.id();
  const kafka::OffsetRange range = consumer_.range(id, kKafkaTimeout);
  StartFacts facts;
  facts.committed = committed.offset;
  if (committed.offset) facts.provenance = kafka::Provenance::parse(committed.metadata);
  facts.low = range.low;
  facts.high = range.high;
  facts.reached = partition.reached;
  facts.cluster_id = cluster_id();
  facts.topic_id = topic_id;
  facts.row = store::read_checkpoint(session(starts_session_), setup_.group, id);
  facts.store_id = store_id();
  facts.key_spec = key::spec_digest(partition.route().key);
  facts.initial_latest = setup_.initial_latest;
  facts.earliest_when_out_of_range = setup_.earliest_when_out_of_range;
  return facts;
}

// Raises the epoch of each; one that somebody took meanwhile is left for later.
void Keeper::take(std::vector<Starting>& starting) {
  std::erase_if(starting, [&](Starting& one) {
    if (one.partition->over()) return true;
    store::Taking taking = taking_of(*one.partition);
    taking.read_epoch = one.facts.row ? one.facts.row->epoch : 0;
    const auto taken = store::take_partition(session(starts_session_), taking);
    one.taken = taken.value_or(store::Taken{});
    if (!taken) acquire({one.partition}, kStartAgain);
    return !taken;
  });
}

bool Keeper::agree(const Starting& starting, const std::string& incarnation) {
  const std::shared_ptr<Partition>& partition = starting.partition;
  if (partition->over()) return true;  // the group has taken it away: this run never began
  const StartFacts& facts = starting.facts;
  auto from = facts.row ? facts.row->next_offset : std::nullopt;
  if (starting.at.jump == store::Jump::log_start) from = starting.at.offset - starting.at.gap;
  const auto highest = store::agree_start(
      session(starts_session_), taking_of(*partition),
      {starting.taken.epoch, starting.at.offset, facts.cluster_id, facts.topic_id,
       facts.row ? facts.row->generation : 1, from, starting.at.jump});
  if (!highest) return false;
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
  beginning.generation = facts.row ? facts.row->generation : 1;
  beginning.offset = starting.at.offset;
  beginning.guard_below = *highest;
  beginning.ahead = store::read_ahead(session(starts_session_), setup_.group, partition->id(),
                                      beginning.generation, starting.at.offset);
  const std::optional<ReadRecord>& before = partition->read_before;
  if (before && (before->generation != beginning.generation || before->offset < facts.low ||
                 before->offset + kMostReadAgain < beginning.offset))
    partition->read_before.reset();
  partition->begin(std::move(beginning));
  {
    const std::lock_guard lock(mutex_);
    held_[partition->id()] = partition;
  }
  notices_.post(Started{partition});
  return true;
}

kafka::Provenance Keeper::provenance(const Starting& starting) const {
  return {store_id(), cluster_id(), starting.taken.epoch, starting.at.first};
}

}  // namespace hapax::worker
