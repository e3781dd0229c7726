// What `hapax bench` sends: payments, all different, the same for the same options.
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hapax/handler.hpp"
#include "kafka/producer.hpp"

namespace hapax::app {

inline constexpr const char* kBenchHandler = "payments-bench";

// The idempotency key holds the payment's number, and comes in the header of this name.
inline constexpr const char* kBenchHeader = "idempotency-key";

struct BenchPayment {
  std::string key;
  std::string account;  // the record key: one of 10,000 accounts
  std::int32_t partition = 0;
  std::string payload;  // JSON of about the bytes that were asked for, half of it hard to compress

  kafka::Outgoing to(const std::string& topic) const {
    return {topic, partition, account, kBenchHeader, key, payload};
  }
};

BenchPayment bench_payment(std::size_t number, int partitions, std::size_t payload_bytes);
std::vector<BenchPayment> bench_payments(std::size_t count, int partitions,
                                         std::size_t payload_bytes);

// The number of a payment, by its idempotency key.
std::size_t number_of(std::string_view key);

// Books a payment in `table` by one deferred write, as a plain handler does.
HandlerFactory bench_handler(const std::string& table);

}  // namespace hapax::app
