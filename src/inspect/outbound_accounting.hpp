// Accounts for the records that a group has published into a topic. Reads it from end to end, and
// compares that with the count of records that the relay has sent.
//
// Keeps 48 bytes for each record until all is read. Owned by the command's thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/kafka_reader.hpp"
#include "cli/output.hpp"
#include "inspect/accounting.hpp"

namespace hapax::app {

// One partition of an outbound topic.
struct OutboundAccount {
  std::int32_t partition = 0;
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t records = 0;    // of the group, repeats included
  std::int64_t repeats = 0;    // of a record that comes before
  std::int64_t differing = 0;  // repeats with other contents
  std::int64_t others = 0;     // records that no relay of the group has sent
};

struct Repeat {
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::int32_t first_partition = 0;
  std::int64_t first_offset = 0;
  bool differs = false;
};

class OutboundAccounting {
 public:
  // `sent`: the records that the relay has sent by now. Throws: Stop. Both references outlive it.
  OutboundAccounting(const config::Config& config, const AuditWanted& wanted, std::int64_t sent);

  // Throws: Stop, std::runtime_error in Kafka's words. Blocks: as long as it takes to read the
  // topic.
  void run();

  const std::vector<OutboundAccount>& accounts() const { return accounts_; }
  const std::vector<Repeat>& repeats() const { return told_; }  // the first ones that matter
  std::int64_t sum(std::int64_t OutboundAccount::*count) const;
  // Records that were sent and are not there. Nothing if Kafka need not have all of them: `why_not`
  // tells why.
  std::optional<std::int64_t> missing() const { return missing_; }
  const std::string& why_not() const { return why_not_; }
  // Records that are there beside as many as were sent. If nothing is missing, and some are there
  // beside, the count does not tell which ones.
  std::int64_t beside() const;
  // Whether consumers must not see a repeat.
  bool is_exact() const { return config_.publish.transactions; }
  bool proven() const;

 private:
  struct Seen {
    std::array<char, 16> name{};
    std::array<char, 8> contents{};
    std::int32_t partition = 0;
    std::int64_t offset = 0;
  };

  void take(const Message& message);
  void find_repeats();
  void look_for_missing(bool from_the_start);

  const config::Config& config_;
  const AuditWanted& wanted_;
  const std::int64_t sent_;
  KafkaReader reader_, whole_;
  std::optional<std::int32_t> hidden_;     // a partition whose end no consumer gets yet
  std::vector<OutboundAccount> accounts_;  // by partition
  std::vector<Seen> seen_;
  std::vector<Repeat> told_;
  std::optional<std::int64_t> missing_;
  std::string why_not_;
};

// As `hapax audit --json` has it, and for people.
Json json_of(const OutboundAccounting& audit);
void print_outbound(const OutboundAccounting& audit, const std::string& topic);

}  // namespace hapax::app
