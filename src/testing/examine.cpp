// Every way in which a message can come, each from the same beginning, held against one delivery.
#include <algorithm>

#include "testing/examination.hpp"

namespace hapax::testing {
namespace {

// More statements of a handler differ little from these, and each costs a database.
constexpr int kMaxStatementFaults = 6;
constexpr int kWorkers = 4;

class EveryWay : Examination {
 public:
  EveryWay(Harness::Implementation& harness, const Record& record, Wanted wanted)
      : Examination(harness, record, wanted) {}

  Report run();

 private:
  bool deliver_once();
  void deliver_once_more();
  void deliver_again();
  void deliver_in_parallel();
  void crash(CrashPoint point, const std::string& name);
  void fail(const Fault& fault);
  void fail_everywhere();
  void expect_again(const Outcome& outcome, Problems& problems);

  int statements_ = 0;
};

// False if there is nothing to hold the others against.
bool EveryWay::deliver_once() {
  same_way("delivered once", [&](Problems& problems) {
    keep_first(problems);
    if (problems.empty() && wanted_ == Wanted::effect && report_.effects.empty())
      problems.emplace_back(
          "it has no effect: it completes and changes no table, and publishes nothing");
    statements_ = harness_.lane().probe().statements();
  });
  return report_.passed();
}

void EveryWay::deliver_once_more() {
  way("delivered once, in the same process, to a database that was put back",
      [&](Problems& problems) {
        const Outcome outcome = deliver();
        expect_end(outcome, problems);
        expect_same_effect(problems);
      });
}

void EveryWay::expect_again(const Outcome& outcome, Problems& problems) {
  const Result wanted =
      report_.once.result == Result::completed ? Result::duplicate : report_.once.result;
  if (outcome.result != wanted)
    problems.push_back("it is " + outcome.text() + ", not " + name_of(wanted));
  expect_contents_after_a_duplicate(problems);
}

void EveryWay::deliver_again() {
  same_way("then delivered again", [&](Problems& problems) { expect_again(deliver(), problems); });
  same_way("then to a worker that was restarted", [&](Problems& problems) {
    harness_.restart();
    expect_again(deliver(), problems);
  });
  if (!can_send_again()) return;
  same_way("then sent again by the producer", [&](Problems& problems) {
    expect_again(harness_.run(harness_.sent_again(record_), std::nullopt, false), problems);
  });
}

void EveryWay::deliver_in_parallel() {
  way("delivered to " + std::to_string(kWorkers) + " workers at once", [&](Problems& problems) {
    std::vector<Outcome> outcomes = harness_.run_in_parallel(record_, kWorkers);
    // One does the work; for a dead letter, which one is all the same.
    const auto first = std::ranges::find(outcomes, report_.once.result, &Outcome::result);
    std::iter_swap(outcomes.begin(), first == outcomes.end() ? outcomes.begin() : first);
    expect_end(outcomes.front(), problems);
    const Result others =
        report_.once.result == Result::completed ? Result::duplicate : report_.once.result;
    for (std::size_t i = 1; i < outcomes.size(); ++i)
      if (outcomes[i].result != others)
        problems.push_back("one of the other workers has it as " + outcomes[i].text() + ", not " +
                           name_of(others));
    expect_contents_after_a_duplicate(problems);
  });
}

void EveryWay::crash(CrashPoint point, const std::string& name) {
  way("the worker dies " + name + ", then it is delivered again", [&](Problems& problems) {
    if (const auto ended = harness_.crash(point, record_)) {
      problems.push_back("the worker did not come so far: " + *ended);
      return;
    }
    const bool stands = point == CrashPoint::committed;
    expect_contents(stands ? after_ : before_, "once the worker is dead", problems);
    const Outcome outcome = deliver();
    if (!stands)
      return expect_end(outcome, problems), expect_contents(after_, "after that", problems);
    expect_again(outcome, problems);
  });
}

void EveryWay::fail(const Fault& fault) {
  const std::string place = fault.statement == Fault::kAtCommit
                                ? "COMMIT"
                                : "statement " + std::to_string(fault.statement);
  const std::string what = fault.sqlstate == "57P01"
                               ? "the connection is lost at "
                               : "PostgreSQL answers " + fault.sqlstate + " to ";
  way(what + place + ", then it is tried again", [&](Problems& problems) {
    Outcome outcome = harness_.run(record_, fault, true);
    if (outcome.result == Result::waiting) {
      expect_contents(before_, "though that run was rolled back,", problems);
      outcome = deliver();
    }
    expect_end(outcome, problems);
    expect_contents(after_, "after that", problems);
  });
}

void EveryWay::fail_everywhere() {
  const int statements = std::min(statements_, kMaxStatementFaults);
  for (int statement = 1; statement <= statements; ++statement) fail({"40001", statement});
  if (report_.once.result == Result::completed) fail({"40P01"});
  // These count as attempts, or may.
  if (harness_.route().route.retry.max_attempts == 1) return;
  if (statements > 0) fail({"57P01", statements});
  if (report_.once.result != Result::completed) return;
  fail({"23505"});
  fail({"57P01"});
}

Report EveryWay::run() {
  if (deliver_once()) {
    deliver_again();
    deliver_once_more();
    deliver_in_parallel();
    if (report_.once.runs > 0) {
      crash(CrashPoint::claimed, "before the handler runs");
      if (report_.once.result == Result::completed) {
        crash(CrashPoint::handled, "after the handler, before COMMIT");
        crash(CrashPoint::committed, "after COMMIT");
      }
      fail_everywhere();
    }
    harness_.restore();
    deliver();
  }
  look_at_the_session();
  return std::move(report_);
}

}  // namespace

Report examine_record(Harness::Implementation& harness, const Record& record, Wanted wanted) {
  return EveryWay(harness, record, wanted).run();
}

}  // namespace hapax::testing
