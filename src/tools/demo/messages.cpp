#include "tools/demo/messages.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

namespace hapax::app {
namespace {

constexpr std::size_t kDemoAccounts = 500;
constexpr double kLatestCopy = 2000;  // a copy comes at most so many payments after its original

std::string numbered(const char* what, std::size_t number) {
  std::string digits = std::to_string(number);
  return what + std::string(6 - std::min<std::size_t>(6, digits.size()), '0') + digits;
}

std::string payload_of(const DemoMessage& message, std::int64_t amount) {
  return nlohmann::json{
      {"id", message.idempotency_key}, {"account", message.account}, {"amount_minor", amount}}
      .dump();
}

// Fills a plan; each message has a place in time, by which all are sorted at the end.
class Planner {
 public:
  explicit Planner(std::size_t payments) : payments_(payments) {}

  void add_payments() {
    for (std::size_t i = 0; i < payments_; ++i) {
      const std::int64_t amount = std::uniform_int_distribution<std::int64_t>(1, 50'000)(random_);
      DemoMessage message = blank("payment-", i);
      message.payload = payload_of(message, amount);
      plan_.ledger[message.idempotency_key] = amount;
      plan_.sum += amount;
      originals_.push_back(message);
      place(static_cast<double>(i), std::move(message));
    }
  }

  // Sends every other one to a partition that is not its original's, as a producer with another
  // partitioner would. The claim has to find it there, too.
  void add_duplicates(std::size_t count) {
    plan_.duplicates = count;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t of = any_payment();
      DemoMessage copy = originals_[of];
      if (i % 2 == 1) copy.partition = (copy.partition + 1) % kDemoPartitions;
      place(later_than(of), std::move(copy));
    }
  }

  // In the original's partition and order, so that the original is always first.
  void add_drifted(std::size_t count) {
    plan_.drifted = count;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t of = any_payment();
      DemoMessage copy = originals_[of];
      copy.payload = payload_of(copy, plan_.ledger.at(copy.idempotency_key) + 1);
      place(later_than(of), std::move(copy));
    }
  }

  void add_poisonous(std::size_t malformed, std::size_t negative) {
    plan_.malformed = malformed;
    plan_.negative = negative;
    for (std::size_t i = 0; i < malformed + negative; ++i) {
      DemoMessage message = blank("poison-", i);
      message.payload = i < malformed ? "{\"id\": \"poison" : payload_of(message, -1);
      place(static_cast<double>(any_payment()), std::move(message));
    }
  }

  DemoPlan finish() {
    std::ranges::stable_sort(placed_, {}, [](const auto& placed) { return placed.first; });
    for (auto& [place, message] : placed_) plan_.messages.push_back(std::move(message));
    return std::move(plan_);
  }

 private:
  static DemoMessage blank(const char* kind, std::size_t number) {
    const std::size_t account = number % kDemoAccounts;
    return {numbered(kind, number),
            numbered("account-", account),
            static_cast<std::int32_t>(account % kDemoPartitions),
            {}};
  }

  std::size_t any_payment() {
    return std::uniform_int_distribution<std::size_t>(0, payments_ - 1)(random_);
  }

  double later_than(std::size_t payment) {
    return static_cast<double>(payment) +
           std::uniform_real_distribution<double>(0.5, kLatestCopy)(random_);
  }

  void place(double when, DemoMessage message) { placed_.emplace_back(when, std::move(message)); }

  const std::size_t payments_;
  std::mt19937_64 random_{1};
  std::vector<DemoMessage> originals_;
  std::vector<std::pair<double, DemoMessage>> placed_;
  DemoPlan plan_;
};

}  // namespace

DemoPlan plan_demo(std::size_t messages) {
  const std::size_t duplicates = messages / 10;
  const std::size_t drifted = std::max<std::size_t>(1, messages / 2000);
  const std::size_t malformed = std::max<std::size_t>(1, messages / 4000);
  const std::size_t negative = malformed;
  Planner planner(messages - duplicates - drifted - malformed - negative);
  planner.add_payments();
  planner.add_duplicates(duplicates);
  planner.add_drifted(drifted);
  planner.add_poisonous(malformed, negative);
  return planner.finish();
}

}  // namespace hapax::app
