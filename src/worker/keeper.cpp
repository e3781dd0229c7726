#include "worker/keeper.hpp"

#include <algorithm>

#include "flow/crash_point.hpp"
#include "key/identity.hpp"
#include "observe/log.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Bounds each question to Kafka; the group goes on polling meanwhile.
constexpr milliseconds kKafkaTimeout{10000};

// After a start that could not be agreed.
constexpr milliseconds kStartAgain{500};

}  // namespace

Keeper::Keeper(KeeperSetup setup, kafka::Consumer& consumer, Notices& notices,
               PostgresState& postgres, observe::Metrics& metrics)
    : setup_(std::move(setup)),
      consumer_(consumer),
      notices_(notices),
      postgres_(postgres),
      metrics_(metrics),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Keeper::~Keeper() = default;

void Keeper::acquire(const std::vector<std::shared_ptr<Partition>>& partitions,
                     milliseconds after) {
  const std::lock_guard lock(mutex_);
  for (const auto& partition : partitions)
    wanted_.push_back({partition, steady_clock::now() + after});
  woken_.notify_all();
}

std::string Keeper::store_id() const {
  const std::lock_guard lock(mutex_);
  return store_.id;
}

std::string Keeper::cluster_id() const {
  const std::lock_guard lock(mutex_);
  return cluster_id_;
}

void Keeper::run(const std::stop_token& stop) {
  auto next_checkpoint = steady_clock::now() + setup_.checkpoint_interval;
  while (!stop.stop_requested()) {
    serve_starts();
    if (steady_clock::now() >= next_checkpoint) {
      next_checkpoint = steady_clock::now() + setup_.checkpoint_interval;
      checkpoint(held());
      serve_halts();
      find_fenced();
      look_for_postgres();
      look_at_group();
    }
    std::unique_lock lock(mutex_);
    auto until = next_checkpoint;
    for (const Wanted& wanted : wanted_) until = std::min(until, wanted.not_before);
    woken_.wait_until(lock, stop, until, [&] {
      return std::ranges::any_of(
          wanted_, [](const Wanted& w) { return w.not_before <= steady_clock::now(); });
    });
  }
}

// Takes what is due and tries; what fails is put back for later.
void Keeper::serve_starts() {
  std::vector<std::shared_ptr<Partition>> due;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(wanted_, [](const Wanted& wanted) { return wanted.partition->over(); });
    for (const Wanted& wanted : wanted_)
      if (wanted.not_before <= steady_clock::now()) due.push_back(wanted.partition);
    std::erase_if(wanted_, [&](const Wanted& wanted) {
      return std::ranges::find(due, wanted.partition) != due.end();
    });
  }
  if (due.empty()) return;
  try {
    start(due);
    return;
  } catch (const store::DatabaseError& error) {
    session_.reset();
    broke("agreeing where partitions start", error);
  } catch (const std::exception& error) {
    observe::log::warning("start_delayed", {{"error", error.what()}},
                          "Kafka did not tell where partitions stand; trying again");
  }
  std::erase_if(due, [&](const auto& partition) {
    const std::lock_guard lock(mutex_);
    return held_.contains(partition->id()) || halted_.contains(partition->id());
  });
  acquire(due, kStartAgain);
}

// The starts, agreed on both sides before anything is fetched: decided for all, taken in
// PostgreSQL, first ones committed to Kafka, written to PostgreSQL. A kill between any two steps
// finds its way: a start that PostgreSQL does not know yet is found in Kafka, with our provenance.
void Keeper::start(const std::vector<std::shared_ptr<Partition>>& partitions) {
  const store::StoreIdentity store = store::read_store(session());
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
    if (one.at.first)
      first.push_back({one.partition->id(), one.at.offset, -1, provenance(one.taken.epoch).text()});
  if (!first.empty()) consumer_.commit_and_wait(first, kKafkaTimeout);
  flow::crash_point("start_committed");
  for (const Starting& one : starting)
    if (!agree(one, store.incarnation)) acquire({one.partition}, kStartAgain);
  flow::crash_point("start_agreed");
}

// What stands in the way of each is posted as HaltWanted; the rest may start.
std::vector<Keeper::Starting> Keeper::decide(
    const std::vector<std::shared_ptr<Partition>>& partitions) {
  const std::vector<store::Halt> halts = store::read_halts(session(), setup_.group);
  std::vector<TopicPartition> ids;
  for (const auto& partition : partitions) ids.push_back(partition->id());
  const auto committed = consumer_.committed(ids, kKafkaTimeout);
  std::map<std::string, std::string> topic_ids;
  std::vector<Starting> starting;
  for (const auto& partition : partitions) {
    const TopicPartition& id = partition->id();
    store::Halt halt{0, id.first, id.second, false, 1, {}, {}, {}, {}, setup_.worker_name};
    const auto open =
        std::ranges::find_if(halts, [&](const store::Halt& other) { return other.stops(id); });
    if (open != halts.end()) {
      notices_.post(HaltWanted{partition, *open, true});
      continue;
    }
    if (store_.copied) {
      halt.reason = "store_copied";
      halt.detail = "the database is a copy: hapax.store was " + store_.facts;
      notices_.post(HaltWanted{partition, halt, false});
      continue;
    }
    const auto [topic_id, is_new] = topic_ids.try_emplace(id.first);
    if (is_new) topic_id->second = consumer_.topic_id(id.first, kKafkaTimeout);
    StartFacts facts = facts_of(*partition, committed.at(id), topic_id->second);
    const auto decision = decide_start(facts);
    if (const auto* refused = std::get_if<StartHalt>(&decision)) {
      halt.generation = facts.row ? facts.row->generation : 1;
      halt.reason = refused->reason;
      halt.detail = refused->detail;
      notices_.post(HaltWanted{partition, halt, false});
      continue;
    }
    starting.push_back({partition, std::move(facts), std::get<StartAt>(decision), {}});
  }
  return starting;
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
  facts.row = store::read_checkpoint(session(), setup_.group, id);
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
    const auto taken = store::take_partition(session(), taking);
    one.taken = taken.value_or(store::Taken{});
    if (!taken) acquire({one.partition}, kStartAgain);
    return !taken;
  });
}

bool Keeper::agree(const Starting& starting, const std::string& incarnation) {
  const std::shared_ptr<Partition>& partition = starting.partition;
  if (partition->over()) return true;  // the group has taken it away: this run never began
  const StartFacts& facts = starting.facts;
  const auto highest =
      store::agree_start(session(), taking_of(*partition),
                         {starting.taken.epoch, starting.at.offset, facts.cluster_id,
                          facts.topic_id, facts.row ? facts.row->generation : 1,
                          facts.row ? facts.row->next_offset : std::nullopt, starting.at.jump});
  if (!highest) return false;
  if (starting.at.gap > 0)
    observe::log::error("messages_lost",
                        {{"topic", partition->id().first},
                         {"partition", partition->id().second},
                         {"messages", starting.at.gap}},
                        "Kafka deleted messages before they were processed; going on at the "
                        "earliest, as kafka.out_of_range says");
  Beginning beginning;
  beginning.epoch = starting.taken.epoch;
  beginning.started_runs = starting.taken.started_runs;
  beginning.incarnation = incarnation;
  beginning.generation = facts.row ? facts.row->generation : 1;
  beginning.offset = starting.at.offset;
  beginning.guard_below = *highest;
  beginning.ahead = store::read_ahead(session(), setup_.group, partition->id(),
                                      beginning.generation, starting.at.offset);
  partition->begin(std::move(beginning));
  {
    const std::lock_guard lock(mutex_);
    held_[partition->id()] = partition;
  }
  notices_.post(Started{partition});
  return true;
}

std::vector<std::shared_ptr<Partition>> Keeper::held() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Partition>> partitions;
  for (const auto& [id, partition] : held_) partitions.push_back(partition);
  return partitions;
}

void Keeper::checkpoint(const std::vector<std::shared_ptr<Partition>>& partitions) {
  std::vector<std::shared_ptr<Partition>> lost;
  const auto began = steady_clock::now();
  try {
    const std::lock_guard lock(checkpoint_mutex_);
    std::vector<store::CheckpointWrite> writes;
    std::vector<std::shared_ptr<Partition>> dirty;
    for (const auto& partition : partitions) {
      const std::int64_t watermark = partition->progress().watermark;
      if (watermark <= partition->checkpointed()) continue;
      dirty.push_back(partition);
      writes.push_back({partition->id(), partition->beginning().incarnation,
                        partition->beginning().epoch, partition->checkpointed(), watermark});
    }
    if (writes.empty()) return;
    if (!checkpoint_session_) checkpoint_session_.emplace(connect());
    flow::crash_point("checkpoint_begun");
    const auto written = store::write_checkpoints(*checkpoint_session_, setup_.group, writes);
    flow::crash_point("checkpointed");
    for (std::size_t i = 0; i < dirty.size(); ++i) {
      if (written.contains(dirty[i]->id())) {
        dirty[i]->checkpointed(writes[i].next_offset);
      } else {
        lost.push_back(dirty[i]);
      }
    }
    metrics_.checkpoint_ended(
        lost.empty() ? observe::CheckpointResult::written : observe::CheckpointResult::fenced,
        steady_clock::now() - began);
  } catch (const store::DatabaseError& error) {
    const std::lock_guard lock(checkpoint_mutex_);
    checkpoint_session_.reset();
    metrics_.checkpoint_ended(observe::CheckpointResult::failed, steady_clock::now() - began);
    broke("writing checkpoints", error);
    // Written or not: where it was, the next one does not find the value written last, and the
    // partition is taken again from its row.
    lost.clear();
  }
  for (const auto& partition : lost) missed(partition);
}

// An operator moves the epochs of idle partitions too, which write no checkpoint that could miss;
// nor does one whose messages all wait because PostgreSQL lost its tail.
void Keeper::find_fenced() {
  const std::vector<std::shared_ptr<Partition>> partitions = held();
  if (partitions.empty() || postgres_.is_down()) return;
  std::vector<std::shared_ptr<Partition>> fenced;
  try {
    const auto held = store::read_held(session(), setup_.group, setup_.worker_name);
    for (const auto& partition : partitions) {
      const Beginning& beginning = partition->beginning();
      const auto found = held.find(partition->id());
      if (found == held.end() || found->second.epoch != beginning.epoch ||
          found->second.incarnation != beginning.incarnation)
        fenced.push_back(partition);
    }
  } catch (const store::DatabaseError& error) {
    session_.reset();
    broke("reading epochs", error);
  }
  for (const auto& partition : fenced) missed(partition);
}

// A checkpoint that found no row to write: the row says why. Not known where PostgreSQL is away:
// then it is as if another had it. The session may be one to a server that has been replaced.
bool Keeper::taken_by_another(const Partition& partition) {
  const std::lock_guard lock(checkpoint_mutex_);
  for (const bool last_try : {false, true}) {
    try {
      if (!checkpoint_session_) checkpoint_session_.emplace(connect());
      const auto row = store::read_checkpoint(*checkpoint_session_, setup_.group, partition.id());
      return row && row->epoch != partition.beginning().epoch && row->owner &&
             *row->owner != setup_.worker_name;
    } catch (const store::DatabaseError&) {
      checkpoint_session_.reset();
      if (last_try) break;
    }
  }
  return true;
}

void Keeper::missed(const std::shared_ptr<Partition>& partition) {
  const bool by_another = taken_by_another(*partition);
  {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(partition->id());
    if (found == held_.end() || found->second != partition) return;
    held_.erase(found);
  }
  notices_.post(Fenced{partition, by_another});
}

bool Keeper::release(const std::vector<std::shared_ptr<Partition>>& partitions, bool idle) {
  std::vector<std::shared_ptr<Partition>> ours;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& partition : partitions) {
      const auto found = held_.find(partition->id());
      if (found != held_.end() && found->second == partition) ours.push_back(partition);
      halted_.erase(partition->id());
    }
  }
  if (!ours.empty() && !postgres_.is_down()) checkpoint(ours);
  bool clean = !postgres_.is_down();
  try {
    const std::lock_guard lock(checkpoint_mutex_);
    // A halt that was only logged would be forgotten, and what it stops run again.
    for (const store::Halt& halt : clean ? unrecorded() : std::vector<store::Halt>()) {
      if (!checkpoint_session_) checkpoint_session_.emplace(connect());
      store::open_halt(*checkpoint_session_, setup_.group, halt);  // the keeper may do it, too
    }
    for (const auto& partition : ours) {
      if (!clean || !idle) break;  // what still runs may settle beyond what is written here
      if (!checkpoint_session_) checkpoint_session_.emplace(connect());
      const Partition::Progress progress = partition->progress();
      store::leave_partition(*checkpoint_session_, taking_of(*partition),
                             partition->beginning().epoch, progress.highest_settled);
    }
  } catch (const store::DatabaseError&) {
    const std::lock_guard lock(checkpoint_mutex_);
    checkpoint_session_.reset();
    clean = false;
  }
  const std::lock_guard lock(mutex_);
  for (const auto& partition : ours) held_.erase(partition->id());
  return clean;
}

store::Taking Keeper::taking_of(const Partition& partition) const {
  return {setup_.group,
          partition.id(),
          setup_.worker_name,
          key::spec_digest(partition.route().key),
          partition.route().key.scope,
          0};
}

kafka::Provenance Keeper::provenance(std::int64_t epoch) const {
  return {store_id(), cluster_id(), epoch};
}

}  // namespace hapax::worker
