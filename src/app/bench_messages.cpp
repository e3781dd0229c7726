#include "app/bench_messages.hpp"

#include <charconv>
#include <nlohmann/json.hpp>
#include <random>

#include "hapax/context.hpp"

namespace hapax::app {
namespace {

constexpr std::size_t kAccounts = 10'000;
constexpr std::string_view kKeyPrefix = "pay-";

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
  std::string digits = std::to_string(number);
  digits.insert(0, 8 - std::min<std::size_t>(8, digits.size()), '0');
  BenchPayment payment{std::string(kKeyPrefix) + digits,
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
  key.remove_prefix(std::min(kKeyPrefix.size(), key.size()));
  std::size_t number = 0;
  std::from_chars(key.data(), key.data() + key.size(), number);
  return number;
}

HandlerFactory bench_handler(const std::string& table) {
  return {kBenchHandler, [table] { return std::make_unique<BenchPayments>(table); }, "1"};
}

}  // namespace hapax::app
