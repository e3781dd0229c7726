// Accounts for the offsets of a topic: Kafka read from end to end, and each message held against
// what PostgreSQL knows.
//
// kAtOnce partitions at once, because each takes a round trip or more. What is read is counted
// soon, so that memory does not grow with the topic. Owned by the command's thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/kafka_reader.hpp"
#include "cli/output.hpp"
#include "inspect/evidence.hpp"
#include "inspect/offset_bounds.hpp"

namespace hapax::app {

struct AuditWanted {
  std::string topic;
  std::string from, to;                   // as parse_bound takes them; empty: all there is
  std::optional<std::int32_t> partition;  // nothing: all
  std::size_t limit = 20;                 // of unaccounted offsets that are told one by one
  bool progress = false;                  // shown if stderr is a terminal
  // Told each offset but those that are not_a_message, each partition's in order.
  std::function<void(std::int32_t partition, std::int64_t offset, Verdict verdict)> each = {};
};

// One partition.
struct Account {
  std::int32_t partition = 0;
  std::int64_t asked_from = 0;  // the first offset to audit; Kafka may have deleted up to `from`
  std::int64_t from = 0;
  std::int64_t to = 0;  // each offset of [from, to) is counted once
  kafka::OffsetRange log;
  std::int64_t lost = 0;  // that Kafka deleted before anybody settled them
  Standing standing;
  std::array<std::int64_t, kVerdicts> counts{};

  std::int64_t count(Verdict verdict) const { return counts[static_cast<std::size_t>(verdict)]; }
};

// As `hapax audit --json` has it.
Json json_of(const Account& account);

struct Unaccounted {
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::string story;
};

class Accounting {
 public:
  // Throws: Stop. All three outlive it.
  Accounting(const config::Config& config, store::Session& session, const AuditWanted& wanted);

  // Throws: Stop, store::DatabaseError, std::runtime_error in Kafka's words.
  // Blocks: as long as it takes to read the topic.
  void run();

  const std::string& group() const { return group_; }
  const std::vector<Account>& accounts() const { return accounts_; }
  const std::vector<Unaccounted>& unaccounted() const { return unaccounted_; }  // the first ones
  std::int64_t sum(Verdict verdict) const;
  std::int64_t lost() const;
  // Partitions with messages that the group has never started on: it may be another's.
  std::int64_t unstarted() const;
  std::int64_t looked_at() const;  // offsets
  // If there was no offset to look at: why that proves nothing. Empty if Kafka has never had one
  // there.
  std::string why_nothing() const;
  bool proven() const {
    return sum(Verdict::unaccounted) == 0 && lost() == 0 && unstarted() == 0 &&
           why_nothing().empty();
  }

 private:
  // One partition that is read.
  struct Open {
    Account account;
    std::int64_t counted = 0;                             // below it every offset is
    std::vector<std::unique_ptr<kafka::Record>> records;  // that are not counted yet
  };

  void account_for(const std::vector<kafka::TopicPartition>& partitions);
  void count_up_to(Open& open, std::int64_t end);
  Account opened(const kafka::TopicPartition& partition);
  bool told(const kafka::TopicPartition& partition) const;
  void ask_of_logs(const kafka::TopicPartition& first);

  const AuditWanted& wanted_;
  const std::string& group_;
  const config::Route& route_;
  const std::int64_t started_ms_;              // since 1970
  const std::optional<std::int64_t> from_ms_;  // if the range begins at a time
  store::Session& session_;
  KafkaReader reader_;
  std::vector<kafka::TopicPartition> partitions_;   // all that are meant
  std::chrono::steady_clock::time_point asked_at_;  // for the next three
  std::map<kafka::TopicPartition, kafka::OffsetRange> logs_;
  std::optional<OffsetBounds> froms_, tos_;  // nothing: not wanted
  std::vector<Account> accounts_;
  std::vector<Unaccounted> unaccounted_;
};

}  // namespace hapax::app
