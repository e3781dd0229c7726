#include "inspect/accounting.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cli/bound.hpp"
#include "cli/store_access.hpp"
#include "config/units.hpp"

namespace hapax::app {
namespace {

constexpr std::size_t kBatch = 1'000;
// So that the dead letters of one batch are few, however sparse the log is.
constexpr std::int64_t kMaxStretch = 100'000;
// How old an answer about a log may be: Kafka deletes its beginning meanwhile.
constexpr std::chrono::seconds kFresh{5};

// On a terminal only: a program that reads stderr wants sentences.
class Progress {
 public:
  explicit Progress(bool wanted) : wanted_(wanted && isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::int32_t partition, std::int64_t offset, std::int64_t end) {
    if (!wanted_) return;
    shown_ = true;
    std::fprintf(stderr, "\r\x1b[Kpartition %d: %lld of %lld", partition,
                 static_cast<long long>(offset), static_cast<long long>(end));
  }

 private:
  bool wanted_;
  bool shown_ = false;
};

}  // namespace

Accounting::Accounting(const config::Config& config, const AuditWanted& wanted)
    : wanted_(wanted),
      group_(group_of(config)),
      route_(route_of(config, wanted.topic)),
      started_ms_(now_ms()),
      session_(open_store(config)),
      reader_(config) {}

void Accounting::run() {
  reader_.reach(kKafkaTimeout);
  const int count = reader_.consumer().partition_count(route_.topic, kKafkaTimeout);
  expect_partition(route_.topic, count, wanted_.partition.value_or(0));
  for (std::int32_t partition = 0; partition < count; ++partition)
    if (!wanted_.partition || *wanted_.partition == partition)
      partitions_.emplace_back(route_.topic, partition);
  for (const kafka::TopicPartition& partition : partitions_) account_for(partition);
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
    return !account.standing.checkpoint && account.from < account.to;
  });
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
  account.asked_from = from;
  account.from = std::clamp(from, log.low, log.high);
  account.to = std::clamp(to, account.from, log.high);
  if (const auto& checkpoint = account.standing.checkpoint)
    account.lost = std::max<std::int64_t>(0, std::min(to, log.low) - std::max(*checkpoint, from));
  // And what it had deleted when the partition went on behind it, without a decision.
  for (const LeftOut::Gap& gap : account.standing.left_out.gaps())
    if (gap.by.cause == store::name_of(store::Jump::log_start))
      account.lost +=
          std::max<std::int64_t>(0, std::min({gap.to, to, log.low}) - std::max(gap.from, from));
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
  froms_ = bounds("--from", wanted_.from, left);
  tos_ = bounds("--to", wanted_.to, left);
  if (!told(first))
    throw std::runtime_error("no broker tells the offsets of " + first.first + "/" +
                             std::to_string(first.second));
}

void Accounting::account_for(const kafka::TopicPartition& id) {
  const std::int32_t partition = id.second;
  Account account = opened(id);
  Progress progress(wanted_.progress);
  std::vector<std::unique_ptr<kafka::Record>> records;
  std::int64_t counted = account.from;  // below it every offset is
  const auto count_up_to = [&](std::int64_t end) {
    count(account, counted, end, records);
    records.clear();
    counted = end;
    progress.show(partition, counted, account.to);
  };
  account.to = reader_.read(id, account.from, account.to, [&](auto record) {
    const std::int64_t offset = record->message().offset();
    while (offset - counted >= kMaxStretch) count_up_to(counted + kMaxStretch);
    records.push_back(std::move(record));
    if (records.size() == kBatch) count_up_to(offset + 1);
  });
  while (counted < account.to) count_up_to(std::min(counted + kMaxStretch, account.to));
  accounts_.push_back(std::move(account));
}

std::optional<Accounting::Bounds> Accounting::bounds(
    const char* option, const std::string& text,
    const std::vector<kafka::TopicPartition>& partitions) const {
  if (text.empty()) return std::nullopt;
  const auto parsed = parse_bound(text);
  const auto ago = config::parse_duration(text);
  if (!parsed && !ago)
    throw Stop(kUsage, std::string(option) + " \"" + text +
                           "\" is none of: an offset, a time in UTC such as 2026-11-01T09:30, how "
                           "long ago (15m, 2h, 7d)");
  if (parsed && !parsed->is_time) {
    Bounds same;
    for (const kafka::TopicPartition& partition : partitions) same[partition] = parsed->value;
    return same;
  }
  const std::int64_t time = parsed ? parsed->value : started_ms_ - ago->count();
  return reader_.consumer().offsets_at(partitions, time, kKafkaTimeout);
}

void Accounting::count(Account& account, std::int64_t from, std::int64_t to,
                       const std::vector<std::unique_ptr<kafka::Record>>& records) {
  const auto add = [&](Verdict verdict, std::int64_t offsets) {
    account.counts[static_cast<std::size_t>(verdict)] += offsets;
  };
  const std::vector<Facts> known = gather(session_, account.standing, route_, from, to, records);
  for (const Facts& facts : known) {
    const Verdict verdict = classify(account.standing, facts);
    add(verdict, 1);
    if (verdict == Verdict::unaccounted && unaccounted_.size() < wanted_.limit)
      unaccounted_.push_back(
          {account.partition, facts.offset, tell(account.standing, facts, verdict)});
  }
  add(Verdict::not_a_message, to - from - static_cast<std::int64_t>(known.size()));
}

}  // namespace hapax::app
