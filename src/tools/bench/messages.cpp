#include "tools/bench/messages.hpp"

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "hapax/context.hpp"

namespace hapax::app {
namespace {

constexpr std::size_t kAccounts = 10'000;

// The number, after digits that are as scattered as those of a UUID. Ascending keys would favour
// the bare loop, because it inserts them in order at the end of the index. The keys of a real topic
// do not come in order.
std::string key_of(std::size_t number) {
  const std::uint64_t scattered = number * std::uint64_t{0x9E3779B97F4A7C15};
  char key[40];
  std::snprintf(key, sizeof key, "%016" PRIx64 "-%08zu", scattered, number);
  return key;
}

class BenchPayments final : public Handler {
 public:
  explicit BenchPayments(std::string table) : table_(std::move(table)) {}

  void handle(const Message& message, Context& context) override {
    const auto payment = message.json();
    context.insert(table_, {"id", "account", "amount_minor"}, payment.at("id"),
                   payment.at("account"), payment.at("amount_minor"));
  }

 private:
  const std::string table_;
};

}  // namespace

BenchPayment bench_payment(std::size_t number, int partitions, std::size_t payload_bytes) {
  std::minstd_rand random(static_cast<std::minstd_rand::result_type>(number + 7919));
  random.discard(3);
  const std::size_t account = random() % kAccounts;
  BenchPayment payment{key_of(number),
                       "acct-" + std::to_string(account),
                       static_cast<std::int32_t>(account % static_cast<std::size_t>(partitions)),
                       {}};
  payment.payload = R"({"id":")" + payment.key + R"(","account":")" + payment.account +
                    R"(","amount_minor":)" + std::to_string(1 + random() % 100'000) +
                    R"(,"currency":"EUR","memo":")";
  while (payment.payload.size() + 2 < payload_bytes)
    payment.payload += static_cast<char>('a' + random() % 26);
  payment.payload += "\"}";
  return payment;
}

std::vector<BenchPayment> bench_payments(std::size_t count, int partitions,
                                         std::size_t payload_bytes) {
  std::vector<BenchPayment> payments;
  payments.reserve(count);
  for (std::size_t n = 0; n < count; ++n)
    payments.push_back(bench_payment(n, partitions, payload_bytes));
  return payments;
}

std::size_t number_of(std::string_view key) {
  key.remove_prefix(std::min(key.find('-') + 1, key.size()));
  std::size_t number = 0;
  std::from_chars(key.data(), key.data() + key.size(), number);
  return number;
}

HandlerFactory bench_handler(const std::string& table) {
  return {kBenchHandler, [table] { return std::make_unique<BenchPayments>(table); }, "1"};
}

}  // namespace hapax::app
