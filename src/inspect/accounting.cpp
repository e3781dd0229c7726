#include "inspect/accounting.hpp"

#include <algorithm>
#include <chrono>

#include "cli/store_access.hpp"
#include "inspect/progress.hpp"

namespace hapax::app {
namespace {

constexpr std::size_t kAtOnce = 50;                        // partitions
constexpr std::size_t kBatch = 1'000;                      // messages of a partition
constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of payloads
// So that the dead letters of one batch are few, however sparse the log is.
constexpr std::int64_t kMaxStretch = 100'000;
// How old an answer about a log may be: Kafka deletes its beginning meanwhile.
constexpr std::chrono::seconds kFresh{5};

// If a range begins at a time.
std::optional<std::int64_t> begin_ms(const std::string& from, std::int64_t now) {
  if (from.empty()) return std::nullopt;
  const Bound bound = bound_of("--from", from, now);
  return bound.is_time ? std::optional(bound.value) : std::nullopt;
}

}  // namespace

Json json_of(const Account& account) {
  Json counts;
  for (std::size_t i = 0; i < kVerdicts; ++i)
    counts[name_of(static_cast<Verdict>(i))] = account.counts[i];
  Json left_out = Json::array();
  for (const LeftOut::Gap& gap : account.standing.left_out.gaps())
    left_out.push_back({{"from", gap.from},
                        {"to", gap.to},
                        {"cause", gap.by.cause},
                        {"who", gap.by.who},
                        {"why", gap.by.why},
                        {"at", gap.by.at}});
  const auto& checkpoint = account.standing.checkpoint;
  const auto& decided = account.standing.same_topic;
  return {
      {"partition", account.partition},
      {"from", account.from},
      {"to", account.to},
      {"generation", account.standing.generation},
      {"checkpoint", checkpoint ? Json(*checkpoint) : Json()},
      {"counts", counts},
      {"deleted_unsettled", account.lost},
      {"left_out", left_out},
      {"same_topic",
       decided ? Json{{"who", decided->who}, {"why", decided->why}, {"at", decided->at}} : Json()},
      {"other_keys", account.standing.other_keys}};
}

Accounting::Accounting(const config::Config& config, store::Session& session,
                       const AuditWanted& wanted)
    : wanted_(wanted),
      group_(group_of(config)),
      route_(route_of(config, wanted.topic)),
      started_ms_(now_ms()),
      from_ms_(begin_ms(wanted.from, started_ms_)),
      session_(session),
      reader_(config) {}

void Accounting::run() {
  reader_.reach(kKafkaTimeout);
  const int count = reader_.consumer().partition_count(route_.topic, kKafkaTimeout);
  expect_partition(route_.topic, count, wanted_.partition.value_or(0));
  for (std::int32_t partition = 0; partition < count; ++partition)
    if (!wanted_.partition || *wanted_.partition == partition)
      partitions_.emplace_back(route_.topic, partition);
  for (std::size_t done = 0; done < partitions_.size(); done += kAtOnce) {
    const auto first = partitions_.begin() + static_cast<std::ptrdiff_t>(done);
    const std::size_t many = std::min(kAtOnce, partitions_.size() - done);
    account_for({first, first + static_cast<std::ptrdiff_t>(many)});
  }
  std::ranges::sort(unaccounted_, {},
                    [](const Unaccounted& one) { return std::pair(one.partition, one.offset); });
}

std::int64_t Accounting::sum(Verdict verdict) const {
  std::int64_t sum = 0;
  for (const Account& account : accounts_) sum += account.count(verdict);
  return sum;
}

std::int64_t Accounting::lost() const {
  std::int64_t sum = 0;
  for (const Account& account : accounts_) sum += account.lost;
  return sum;
}

std::int64_t Accounting::unstarted() const {
  return std::ranges::count_if(accounts_, [](const Account& account) {
    return !account.standing.checkpoint && account.log.low < account.log.high;
  });
}

std::int64_t Accounting::looked_at() const {
  std::int64_t sum = 0;
  for (const Account& account : accounts_) sum += account.to - account.from;
  return sum;
}

std::string Accounting::why_nothing() const {
  if (looked_at() > 0) return {};
  if (std::ranges::none_of(accounts_,
                           [](const Account& one) { return one.standing.checkpoint.has_value(); }))
    return "group " + group_ + " has never started on this topic";
  const auto deleted =
      std::ranges::find_if(accounts_, [](const Account& one) { return one.log.low > 0; });
  if (wanted_.to.empty() || deleted == accounts_.end()) return {};
  return "Kafka has deleted what was there: the log of partition " +
         std::to_string(deleted->partition) + " begins at " + std::to_string(deleted->log.low);
}

Account Accounting::opened(const kafka::TopicPartition& partition) {
  if (!told(partition) || std::chrono::steady_clock::now() - asked_at_ > kFresh)
    ask_of_logs(partition);
  const kafka::OffsetRange log = logs_.at(partition);
  Account account;
  account.partition = partition.second;
  account.standing = read_standing(session_, group_, route_, partition.second, started_ms_);
  const std::int64_t from = froms_ ? froms_->at(partition) : 0;
  const std::int64_t to = tos_ ? tos_->at(partition) : log.high;
  // What Kafka has deleted may be younger than the time at which the range begins.
  const bool is_cut = from_ms_ && from == log.low;
  account.asked_from = from;
  account.from = std::clamp(from, log.low, log.high);
  account.to = std::clamp(to, account.from, log.high);
  account.log = log;
  const auto lost = [&](std::int64_t begin, std::int64_t end) {
    return std::max<std::int64_t>(
        0, std::min({end, to, log.low}) - std::max(begin, is_cut ? std::int64_t{0} : from));
  };
  if (const auto& checkpoint = account.standing.checkpoint)
    account.lost = lost(*checkpoint, log.low);
  // And what it had deleted when the partition went on behind it, without a decision.
  for (const LeftOut::Gap& gap : account.standing.left_out.gaps())
    if (gap.by.cause == store::name_of(store::Jump::log_start) &&
        !(is_cut && gap.by.at_ms < *from_ms_))
      account.lost += lost(gap.from, gap.to);
  return account;
}

bool Accounting::told(const kafka::TopicPartition& partition) const {
  return logs_.contains(partition) && (!froms_ || froms_->contains(partition)) &&
         (!tos_ || tos_->contains(partition));
}

// Of this partition and those behind it at once: one after the other, hundreds take minutes.
void Accounting::ask_of_logs(const kafka::TopicPartition& first) {
  const std::vector<kafka::TopicPartition> left(std::ranges::find(partitions_, first),
                                                partitions_.end());
  asked_at_ = std::chrono::steady_clock::now();
  logs_ = reader_.consumer().ranges(left, kKafkaTimeout);
  froms_ = offset_bounds(reader_.consumer(), "--from", wanted_.from, started_ms_, left);
  tos_ = offset_bounds(reader_.consumer(), "--to", wanted_.to, started_ms_, left);
  if (!told(first))
    throw std::runtime_error("no broker tells the offsets of " + first.first + "/" +
                             std::to_string(first.second));
}

void Accounting::account_for(const std::vector<kafka::TopicPartition>& partitions) {
  std::map<std::int32_t, Open> opens;
  std::vector<KafkaReader::Stretch> stretches;
  for (const kafka::TopicPartition& id : partitions) {
    Open& open = opens[id.second];
    open.account = opened(id);
    open.counted = open.account.from;
    stretches.push_back({id, open.account.from, open.account.to});
  }
  Progress progress(wanted_.progress);
  const auto count_on = [&](Open& open, std::int64_t end) {
    count_up_to(open, end);
    progress.show(open.account.partition, end, open.account.to);
  };
  std::size_t bytes = 0;  // since all were counted
  const auto ends = reader_.read(stretches, [&](auto record) {
    const Message& message = record->message();
    Open& open = opens.at(message.partition());
    const std::int64_t offset = message.offset();
    while (offset - open.counted >= kMaxStretch) count_on(open, open.counted + kMaxStretch);
    bytes += message.payload().value_or("").size();
    open.records.push_back(std::move(record));
    if (open.records.size() == kBatch) count_on(open, offset + 1);
    if (bytes < kMostBytes) return;
    for (auto& [number, one] : opens)
      if (!one.records.empty()) count_on(one, one.records.back()->message().offset() + 1);
    bytes = 0;
  });
  for (std::size_t place = 0; place < ends.size(); ++place) {
    Open& open = opens.at(stretches[place].partition.second);
    open.account.to = ends[place];
    while (open.counted < ends[place])
      count_on(open, std::min(open.counted + kMaxStretch, ends[place]));
    accounts_.push_back(std::move(open.account));
  }
}

void Accounting::count_up_to(Open& open, std::int64_t end) {
  const auto add = [&](Verdict verdict, std::int64_t offsets) {
    open.account.counts[static_cast<std::size_t>(verdict)] += offsets;
  };
  const Standing& standing = open.account.standing;
  const auto known = gather(session_, standing, route_, open.counted, end, open.records);
  for (const Facts& facts : known) {
    const Verdict verdict = classify(standing, facts);
    add(verdict, 1);
    if (wanted_.each) wanted_.each(open.account.partition, facts.offset, verdict);
    if (verdict == Verdict::unaccounted && unaccounted_.size() < wanted_.limit)
      unaccounted_.push_back(
          {open.account.partition, facts.offset, tell(standing, facts, verdict)});
  }
  add(Verdict::not_a_message, end - open.counted - static_cast<std::int64_t>(known.size()));
  open.records.clear();
  open.counted = end;
}

}  // namespace hapax::app
