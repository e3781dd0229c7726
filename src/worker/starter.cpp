#include "worker/starter.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>

#include "flow/crash_point.hpp"
#include "key/identity.hpp"
#include "observe/log.hpp"
#include "worker/start_log.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kLookHolds{10};  // after that, the topic may have been made again

constexpr std::chrono::seconds kDoubted{10};  // a broker learns sooner that it leads no more

}  // namespace

Starter::Starter(const KeeperSetup& setup, kafka::Consumer& consumer, HeldPartitions& held,
                 const HaltWatch& halts, Notices& notices, PostgresState& postgres, Again again)
    : setup_(setup),
      consumer_(consumer),
      held_(held),
      halts_(halts),
      notices_(notices),
      again_(std::move(again)),
      session_(setup.connect, postgres),
      questions_(setup, consumer) {}

std::string Starter::store_id() const {
  const sync::Lock lock(mutex_);
  return store_id_;
}

std::string Starter::cluster_id() const {
  const sync::Lock lock(mutex_);
  return cluster_id_;
}

bool Starter::start(const List& partitions) {
  try {
    agree_all(partitions);
    return true;
  } catch (const store::DatabaseError& error) {
    session_.broke("agreeing on the start of partitions", error);
  } catch (const std::exception& error) {
    questions_.log_delayed(error);
    for (const auto& partition : partitions) partition->delayed(error.what());
  }
  return false;
}

// Agrees starts with both sides before anything is fetched. All are decided, taken in PostgreSQL,
// and then written to both sides. If the process is killed between two steps, their order lets the
// next start find the right offset.
void Starter::agree_all(const List& partitions) {
  looks_.clear();
  const bool calls_outside = std::ranges::any_of(
      partitions, [](const auto& one) { return one->route().outside.has_value(); });
  store_ = store::read_store(session_.get(), calls_outside);
  if (store_.position && store_.incarnation != found_.incarnation) found_ = store_;
  std::string cluster = consumer_.cluster_id(kKafkaTimeout);
  {
    const sync::Lock lock(mutex_);
    store_id_ = store_.id;
    cluster_id_ = std::move(cluster);
  }
  std::vector<Starting> starting = decide(partitions);
  take(starting);
  flow::crash_point("taken");
  List again;
  for (const Starting& refused : tell_kafka(starting, KafkaLearns::before_postgresql))
    again.push_back(refused.partition);
  flow::crash_point("start_committed");
  agree(starting, again);
  if (!again.empty()) again_(again, kStartAgain);
  for (LookWanted& look : std::exchange(looks_, {})) notices_.post(std::move(look));
  flow::crash_point("start_agreed");
}

// If Kafka does not take the offset of a start, removes it from `starting`. Returns the removed
// ones.
std::vector<Starter::Starting> Starter::tell_kafka(std::vector<Starting>& starting,
                                                   KafkaLearns when) {
  std::vector<kafka::Commit> commits;
  for (const Starting& one : starting) {
    if (when_kafka_learns(one.facts, one.at) != when) continue;
    kafka::Provenance provenance{store_id(), cluster_id(), one.taken.epoch};
    if (one.at.first) provenance.first = first_generation(one.facts);
    // If this start is not agreed, the next one must still see the loss.
    const bool in_doubt = one.at.doubt_below > 0 && when == KafkaLearns::before_postgresql;
    if (one.facts.wal)
      provenance.wal = (in_doubt ? store::WalPosition::lost() : *one.facts.wal).text();
    commits.push_back({one.partition->id(), one.at.offset, -1, provenance.text()});
  }
  if (commits.empty()) return {};
  std::map<TopicPartition, std::string> why;
  try {
    why = consumer_.commit_and_wait(commits, kKafkaTimeout);
  } catch (const std::exception& error) {
    for (const kafka::Commit& commit : commits) why.emplace(commit.partition, error.what());
  }
  const auto rest = std::stable_partition(
      starting.begin(), starting.end(),
      [&](const Starting& one) { return !why.contains(one.partition->id()); });
  std::vector<Starting> refused;
  std::move(rest, starting.end(), std::back_inserter(refused));
  starting.erase(rest, starting.end());
  for (const Starting& one : refused) {
    const auto error = "Kafka did not take the start's offset: " + why.at(one.partition->id());
    questions_.log_delayed(std::runtime_error(error));
    one.partition->delayed(error);
  }
  return refused;
}

// Returns the partitions that may start. For each of the others posts HaltWanted with the reason.
std::vector<Starter::Starting> Starter::decide(const List& partitions) {
  // First, because a halt may move to the recorded ones meanwhile.
  auto halts = halts_.unrecorded();
  for (store::Halt& halt : halts) halt.since = "just now";
  std::ranges::move(store::read_halts(session_.get(), setup_.group), std::back_inserter(halts));
  List may_start;
  for (const auto& partition : partitions)
    if (!partition->over() && !is_stopped(partition, halts)) may_start.push_back(partition);
  if (may_start.empty()) return {};
  const StartQuestions::Answers answers = questions_.ask(may_start, session_);
  std::vector<Starting> starting;
  for (auto partition = may_start.begin(); partition != may_start.end(); ++partition) {
    if ((*partition)->over()) continue;
    try {
      if (auto one = decide(*partition, answers)) starting.push_back(std::move(*one));
    } catch (const store::DatabaseError&) {
      throw;
    } catch (const std::exception& error) {
      // The doubt about the log's end was not confirmed.
      (*partition)->handover.short_since.reset();
      questions_.log_delayed(error);
      (*partition)->delayed(error.what());
      again_({*partition}, kStartAgain);
      if (!answers.was_asked_alone((*partition)->id())) continue;
      // The question took long, because a broker did not answer. So the decided partitions start
      // first.
      again_({std::next(partition), may_start.end()}, {});
      break;
    }
  }
  return starting;
}

// Whether a halt that has not ended, or the database, forbids the start.
bool Starter::is_stopped(const std::shared_ptr<Partition>& partition,
                         const std::vector<store::Halt>& halts) {
  const TopicPartition& id = partition->id();
  const auto open =
      std::ranges::find_if(halts, [&](const store::Halt& other) { return other.stops(id); });
  if (open != halts.end()) {
    notices_.post(HaltWanted{.partition = partition, .halt = *open, .recorded = true});
    return true;
  }
  if (!store_.copied) return false;
  store::Halt halt = halt_of(*partition, setup_.worker_name);
  halt.reason = "store_copied";
  halt.detail = "the database is a copy: hapax.store was " + store_.facts;
  notices_.post(HaltWanted{.partition = partition, .halt = halt});
  return true;
}

std::optional<Starter::Starting> Starter::decide(const std::shared_ptr<Partition>& partition,
                                                 const StartQuestions::Answers& answers) {
  const TopicPartition& id = partition->id();
  StartFacts facts = questions_.facts_of(*partition, answers);
  facts.cluster_id = cluster_id();
  facts.store_id = store_id();
  if (facts.repeat) {
    facts.wal = store_.position;
    facts.began_wal = found_.began;
  }
  if (const auto& seen = partition->handover.seen_wal) {
    facts.was_seen_before = seen->incarnation != store_.incarnation;
    facts.left = seen->left;
  }
  // Otherwise hapax would not notice that the topic is another one.
  if (facts.row && facts.row->topic_id && facts.topic_id.empty() && kafka::can_tell_topic_ids())
    throw std::runtime_error("Kafka does not tell the id of topic " + id.first);
  facts.look = std::exchange(partition->handover.look, std::nullopt);
  if (facts.look && facts.look->at + kLookHolds < steady_clock::now()) facts.look.reset();
  const auto decision = decide_start(facts);
  if (const auto* look = std::get_if<StartLook>(&decision)) {
    partition->delayed("looks whether the record at offset " + std::to_string(look->record.offset) +
                       " is the one that another group read there");
    looks_.push_back({partition, look->record});
    return std::nullopt;
  }
  if (const auto* refused = std::get_if<StartHalt>(&decision)) {
    if (may_be_outdated(*partition, *refused)) {
      again_({partition}, kStartAgain);
      return std::nullopt;
    }
    if (refused->asks_below > 0)
      store::ask_about_doubt(session_.get(), setup_.group, id, refused->asks_below,
                             refused->asks_run);
    store::Halt halt = halt_of(*partition, setup_.worker_name);
    halt.generation = facts.row ? facts.row->generation : 1;
    if (refused->generation > 0) halt.generation = refused->generation;
    halt.reason = refused->reason;
    halt.detail = refused->detail;
    notices_.post(HaltWanted{.partition = partition, .halt = halt});
    return std::nullopt;
  }
  return Starting{partition, std::move(facts), std::get<StartAt>(decision), {}};
}

// A broker that stood still may believe that it leads, and lack what its followers have. So a log
// counts as too short only if it seems so for a while.
bool Starter::may_be_outdated(Partition& partition, const StartHalt& halt) {
  if (!halt.is_of_short_log) return false;
  const auto& [topic, number] = partition.id();
  const auto now = steady_clock::now();
  if (!partition.handover.short_since) {
    partition.handover.short_since = now;
    observe::log::warning("start_doubted", {{"topic", topic}, {"partition", number}},
                          halt.detail + "; asking for ten seconds whether that is so");
  }
  if (now - *partition.handover.short_since >= kDoubted) return false;
  consumer_.partition_count(topic, kKafkaTimeout);  // the answer names the leader of now
  return true;
}

// Raises the epoch of each. If another worker took one meanwhile, its start is tried later.
void Starter::take(std::vector<Starting>& starting) {
  std::vector<store::Taking> takings;
  for (const Starting& one : starting) {
    if (one.partition->over()) continue;
    takings.push_back(taking_of(*one.partition));
    takings.back().read_epoch = one.facts.row ? one.facts.row->epoch : 0;
  }
  const auto taken = store::take_partitions(session_.get(), takings);
  std::erase_if(starting, [&](Starting& one) {
    const auto found = taken.find(one.partition->id());
    const bool waits = found == taken.end() || is_settling(*one.partition, found->second);
    if (waits || is_outdated(one.facts, found->second)) {
      if (!one.partition->over()) again_({one.partition}, waits ? kStartAgain : milliseconds(0));
      return true;
    }
    one.taken = found->second;
    if (!one.facts.row && !one.facts.key_may_be_coordinates)
      one.at.generation = one.taken.generation;
    return false;
  });
}

// `again` receives the partitions that are not ours any more, and those whose offset Kafka refuses.
void Starter::agree(std::vector<Starting>& starting, List& again) {
  std::erase_if(starting, [](const Starting& one) { return one.partition->over(); });
  std::vector<store::StartWrite> starts;
  for (const Starting& one : starting)
    starts.push_back({.taking = taking_of(*one.partition),
                      .start = agreed_start(one.facts, one.at, one.taken.epoch)});
  const auto highest = store::agree_starts(session_.get(), std::move(starts));
  std::erase_if(starting, [&](const Starting& one) {
    if (highest.contains(one.partition->id())) return false;
    again.push_back(one.partition);
    return true;
  });
  std::vector<store::Leaving> unbegun;
  for (const Starting& one : tell_kafka(starting, KafkaLearns::after_postgresql)) {
    unbegun.push_back({.partition = one.partition->id(),
                       .epoch = one.taken.epoch,
                       .incarnation = store_.incarnation,
                       .highest_settled = settled_before(one.facts, one.at)});
    again.push_back(one.partition);
  }
  store::leave_partitions(session_.get(), setup_.group, std::move(unbegun));
  std::vector<store::Standing> standings;
  for (const Starting& one : starting)
    standings.push_back({.partition = one.partition->id(),
                         .generation = one.at.generation,
                         .offset = one.at.offset,
                         .by_position = key::is_by_position(one.partition->route().key),
                         .epoch = one.taken.epoch});
  auto known = store::read_known_messages(session_.get(), setup_.group, standings);
  for (const Starting& one : starting)
    begin(one, highest.at(one.partition->id()), std::move(known[one.partition->id()]));
}

void Starter::begin(const Starting& starting, std::int64_t highest, store::KnownMessages known) {
  const auto& [partition, facts, at, taken] = starting;
  log_beginning(partition->id(), facts, at);
  Beginning beginning;
  beginning.epoch = taken.epoch;
  beginning.started_runs = taken.started_runs;
  beginning.incarnation = store_.incarnation;
  beginning.unlogged_id = store_.unlogged_id;
  beginning.topic_id = facts.topic_id;
  beginning.has_kafka_offset =
      facts.committed || when_kafka_learns(facts, at) == KafkaLearns::before_postgresql;
  beginning.generation = at.generation;
  beginning.offset = at.offset;
  beginning.log_end = facts.high;
  beginning.settled_before = settled_before(facts, at);
  beginning.guard_below = highest;
  beginning.doubt_below = at.doubt_below;
  beginning.same_topic = facts.row ? facts.row->same_topic : 0;
  beginning.known = std::move(known);
  auto& before = partition->handover.read_before;
  before = read_again(facts, at, std::move(before));
  if (facts.wal) partition->saw({*facts.wal, store_.incarnation});
  partition->begin(std::move(beginning));
  held_.add(partition);
  // The group took it away meanwhile, perhaps too late for the release. No message of it has run.
  if (partition->over()) {
    const store::Leaving leaving{partition->id(), partition->beginning().epoch, store_.incarnation,
                                 partition->progress().highest_settled};
    store::leave_partitions(session_.get(), setup_.group, {leaving});
  }
  notices_.post(Started{partition});
}

store::Taking Starter::taking_of(const Partition& partition) const {
  return {.group = setup_.group,
          .partition = partition.id(),
          .owner = setup_.worker_name,
          .key_spec = key::spec_digest(partition.route().key),
          .scope = partition.route().key.scope,
          .by_position = key::is_by_position(partition.route().key)};
}

}  // namespace hapax::worker
