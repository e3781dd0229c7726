// Two different messages at once, held against one behind the other.
#include <atomic>
#include <thread>

#include "testing/examination.hpp"

namespace hapax::testing {
namespace {

// That threads wait for, and that stays set.
class Signal {
 public:
  void set() {
    is_set_ = true;
    is_set_.notify_all();
  }
  void wait() const { is_set_.wait(false); }
  bool is_set() const { return is_set_; }

 private:
  std::atomic<bool> is_set_ = false;
};

struct SetAtEnd {
  ~SetAtEnd() { signal.set(); }
  Signal& signal;
};

class Pair : Examination {
 public:
  Pair(Harness::Implementation& harness, const Record& first, const Record& second)
      : Examination(harness, first, Wanted::effect), second_(second) {}

  Report run();

 private:
  struct End {
    Outcome first, second;
    Tables tables;
  };

  Outcome deliver(const Record& record) { return harness_.run(record, std::nullopt, false); }
  void expect_an_order(const Outcome& first, const Outcome& second, Problems& problems);

  const Record& second_;
  std::vector<End> orders_;
};

// The effect must be that of one of the orders.
void Pair::expect_an_order(const Outcome& first, const Outcome& second, Problems& problems) {
  Problems fewest;
  for (const End& end : orders_) {
    Problems found;
    if (first.result != end.first.result || second.result != end.second.result)
      found.push_back("they end as " + first.text() + " and " + second.text() +
                      ", one behind the other as " + end.first.text() + " and " +
                      end.second.text());
    expect_contents(end.tables, "after both", found);
    if (found.empty()) return;
    if (fewest.empty() || found.size() < fewest.size()) fewest = std::move(found);
  }
  problems = std::move(fewest);
  problems.emplace_back(
      "a handler that selects a value and writes what it computed from it loses updates: compute "
      "it in the UPDATE, or select it FOR UPDATE");
}

Report Pair::run() {
  same_way("the first message, then the second", [&](Problems& problems) {
    keep_first(problems);
    if (problems.empty() && report_.effects.empty()) problems.emplace_back("it has no effect");
    if (!problems.empty()) return;
    const Outcome second = deliver(second_);
    if (second.result == Result::duplicate)
      problems.emplace_back("both have one key: give each a key of its own");
    orders_.push_back({report_.once, second, harness_.tables()});
  });
  if (!report_.passed()) return std::move(report_);
  way("the second message, then the first", [&](Problems&) {
    const Outcome second = deliver(second_);
    const Outcome first = deliver(record_);
    orders_.push_back({first, second, harness_.tables()});
  });
  way("the second message, while the transaction of the first is open", [&](Problems& problems) {
    const auto [first, second] = harness_.run_across(record_, second_);
    expect_an_order(first, second, problems);
  });
  way("the first message, while the transaction of the second is open", [&](Problems& problems) {
    const auto [second, first] = harness_.run_across(second_, record_);
    expect_an_order(first, second, problems);
  });
  harness_.restore();
  deliver(record_);
  deliver(second_);
  return std::move(report_);
}

}  // namespace

std::pair<Outcome, Outcome> Harness::Implementation::run_across(const Record& first,
                                                                const Record& second) {
  const Delivery deliveries[] = {delivery_of(first), delivery_of(second)};
  Signal is_open, goes_on, ended;
  const auto let_go = [&] {
    goes_on.set();
    ended.wait();
  };
  const std::unique_ptr<Lane> lanes[] = {make_lane(), make_lane([] {}, let_go)};
  lanes[0]->probe().hold([&] {
    is_open.set();
    goes_on.wait();
  });
  Outcome outcomes[2];
  std::exception_ptr errors[2];
  Signal second_ended;
  const auto run = [&](std::size_t i) {
    try {
      outcomes[i] = lanes[i]->run(deliveries[i], std::nullopt, false);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  {
    const std::jthread one([&] {
      run(0);
      is_open.set();  // of one that its handler refused
      ended.set();
    });
    is_open.wait();
    const std::jthread other([&] {
      run(1);
      second_ended.set();
    });
    const SetAtEnd also_if_asking_throws{goes_on};
    while (!second_ended.is_set() && !goes_on.is_set()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::lock_guard lock(time_);
      if (store::is_waiting(database_.owner())) break;
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (errors[i]) std::rethrow_exception(errors[i]);
    collect_leaks(*lanes[i]);
  }
  return {outcomes[0], outcomes[1]};
}

Report examine_pair(Harness::Implementation& harness, const Record& first, const Record& second) {
  return Pair(harness, first, second).run();
}

}  // namespace hapax::testing
