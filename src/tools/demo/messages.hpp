// What `hapax demo` sends, and what the ledger must hold afterwards.
//
// Pure: the same number of messages gives the same messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hapax::app {

inline constexpr int kDemoPartitions = 8;
inline constexpr std::size_t kMinDemoMessages = 100;
// The built-in broker keeps 5 MiB of compressed messages a partition; this is well below.
inline constexpr std::size_t kMaxDemoMessages = 200'000;

struct DemoMessage {
  std::string idempotency_key;
  std::string account;  // the record key: one account, one order
  std::int32_t partition = 0;
  std::string payload;
};

struct DemoPlan {
  std::vector<DemoMessage> messages;           // in the order of sending
  std::map<std::string, std::int64_t> ledger;  // payment → amount, each once
  std::int64_t sum = 0;                        // of the ledger
  std::size_t duplicates = 0;                  // same key, same payload
  std::size_t drifted = 0;                     // same key, another amount: not to be booked
  std::size_t malformed = 0;                   // no JSON
  std::size_t negative = 0;                    // an amount below zero
};

// Precondition: kMinDemoMessages <= messages <= kMaxDemoMessages.
DemoPlan plan_demo(std::size_t messages);

}  // namespace hapax::app
