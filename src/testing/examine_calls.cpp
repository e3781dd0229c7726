// Every point at which a call to the outside can break off, each from the same beginning, held
// against one call that went well.
#include "config/config.hpp"
#include "testing/examination.hpp"

namespace hapax::testing {
namespace {

class EveryCall : Examination {
 public:
  EveryCall(Harness::Implementation& harness, const Record& record, const OtherSide& other_side,
            Wanted wanted)
      : Examination(harness, record, wanted),
        other_side_(other_side),
        repeat_(harness.route().route.outside->repeat) {}

  Report run();

 private:
  bool call_once();
  void deliver_again();
  void call_once_more();
  void break_off(CallFault fault, const std::string& name);
  void break_off_a_step(CallFault fault, const std::string& name);
  void break_off_while_reconciling();
  void die_in_the_booking();
  void fail_the_booking(const Fault& fault, const std::string& name);

  // A way from the beginning, also for the other side.
  void fresh_way(const std::string& name, const Deliver& deliver) {
    other_side_.forget();
    way(name, deliver);
  }
  void expect_effects(std::int64_t expected, Problems& problems) const;
  void expect_same(const Outcome& outcome, Problems& problems);
  void expect_unknown(const Outcome& outcome, std::int64_t effects, Problems& problems) const;
  void die(CallFault fault) {
    if (const auto ended = harness_.run(record_, fault))
      throw std::runtime_error("the call was not made: " + ended->text());
  }

  const OtherSide& other_side_;
  const config::Repeat repeat_;
  std::int64_t effects_ = 0;  // of one call
};

void EveryCall::expect_effects(std::int64_t expected, Problems& problems) const {
  const std::int64_t found = other_side_.effects();
  if (found == expected) return;
  std::string problem = "the other side has had " + std::to_string(found) + " effects, not " +
                        std::to_string(expected);
  if (found > expected && repeat_ == config::Repeat::idempotent)
    problem +=
        ": does `call` hand on call.key(), and does the other side honour it? If it does not, the "
        "route must not declare `idempotent`";
  if (found > expected && repeat_ == config::Repeat::queryable)
    problem += ": does `reconcile` find what `call` has done?";
  problems.push_back(std::move(problem));
}

void EveryCall::expect_same(const Outcome& outcome, Problems& problems) {
  expect_end(outcome, problems);
  expect_effects(effects_, problems);
  expect_contents(after_, "after that", problems);
}

void EveryCall::expect_unknown(const Outcome& outcome, std::int64_t effects,
                               Problems& problems) const {
  if (outcome.result != Result::failed || outcome.reason != "outcome_unknown")
    problems.push_back("it ends as " + outcome.text() + ", not as outcome_unknown");
  expect_effects(effects, problems);
}

// False if there is nothing to hold the others against.
bool EveryCall::call_once() {
  other_side_.forget();
  same_way("called once", [&](Problems& problems) {
    keep_first(problems);
    effects_ = other_side_.effects();
    if (report_.once.calls > 1)
      problems.push_back("it was called " + std::to_string(report_.once.calls) +
                         " times: " + report_.once.text());
    if (problems.empty() && wanted_ == Wanted::effect && effects_ == 0)
      problems.emplace_back("it has no effect: the other side has had none");
  });
  return report_.passed();
}

void EveryCall::deliver_again() {
  const auto expect_no_call = [this](const Outcome& outcome, Problems& problems) {
    if (outcome.calls > 0) problems.emplace_back("it is called again");
    expect_effects(effects_, problems);
    expect_contents(after_, "after that", problems);
  };
  same_way("then delivered again",
           [&](Problems& problems) { expect_no_call(deliver(), problems); });
  if (!can_send_again()) return;
  same_way("then sent again by the producer", [&](Problems& problems) {
    expect_no_call(harness_.run(harness_.sent_again(record_), std::nullopt, false), problems);
  });
}

void EveryCall::call_once_more() {
  fresh_way("called once, in the same process, from the same beginning", [&](Problems& problems) {
    const Outcome outcome = deliver();
    expect_end(outcome, problems);
    expect_effects(effects_, problems);
    expect_same_effect(problems);
  });
}

void EveryCall::break_off(CallFault fault, const std::string& name) {
  fresh_way(name + ", then it is delivered again", [&](Problems& problems) {
    std::optional<Outcome> outcome;
    if (fault == CallFault::loses_answer)
      outcome = harness_.run(record_, fault);
    else
      die(fault);
    if (!outcome) outcome = deliver();
    const bool blind = repeat_ == config::Repeat::never && fault != CallFault::dies_kept;
    if (blind)
      expect_unknown(*outcome, fault == CallFault::dies_before ? 0 : effects_, problems);
    else
      expect_same(*outcome, problems);
    if (fault == CallFault::dies_kept && outcome->calls > 0)
      problems.emplace_back("it is called again, though the answer is kept");
  });
}

void EveryCall::break_off_a_step(CallFault fault, const std::string& name) {
  fresh_way(name + ", then it is delivered again", [&](Problems& problems) {
    die(fault);
    const std::int64_t so_far = other_side_.effects();
    const Outcome outcome = deliver();
    if (repeat_ == config::Repeat::never)
      expect_unknown(outcome, so_far, problems);
    else
      expect_same(outcome, problems);
  });
}

void EveryCall::break_off_while_reconciling() {
  fresh_way("the process dies in the call, and the other side cannot tell at first",
            [&](Problems& problems) {
              die(CallFault::dies_after);
              const auto outcome = harness_.run(record_, CallFault::cannot_tell);
              expect_same(*outcome, problems);
            });
}

void EveryCall::die_in_the_booking() {
  fresh_way("the process dies in the booking, before COMMIT, then it is delivered again",
            [&](Problems& problems) {
              die(CallFault::dies_kept);
              if (const auto ended = harness_.crash(CrashPoint::handled, record_))
                return problems.push_back("the process did not come so far: " + *ended);
              const Outcome outcome = deliver();
              expect_same(outcome, problems);
              if (outcome.calls > 0)
                problems.emplace_back("it is called again, though the answer is kept");
            });
}

void EveryCall::fail_the_booking(const Fault& fault, const std::string& name) {
  fresh_way(name + " in the booking, then it is tried again", [&](Problems& problems) {
    const Outcome outcome = harness_.run(record_, fault, false);
    expect_same(outcome, problems);
    if (outcome.calls > 1) problems.emplace_back("it is called again, though the answer is kept");
  });
}

Report EveryCall::run() {
  if (call_once()) {
    const bool has_steps = harness_.keeps_steps();
    deliver_again();
    call_once_more();
    break_off(CallFault::dies_before, "the process dies before the call");
    break_off(CallFault::dies_after, "the process dies in the call, when the other side has it");
    break_off(CallFault::loses_answer, "the connection breaks before the answer comes");
    if (has_steps) {
      break_off_a_step(CallFault::dies_in_step,
                       "the process dies in the first step, when the other side has it");
      break_off_a_step(CallFault::dies_between, "the process dies when the first step is kept");
    }
    if (repeat_ == config::Repeat::queryable) break_off_while_reconciling();
    if (report_.once.runs > 0) {
      break_off(CallFault::dies_kept, "the process dies before the booking");
      die_in_the_booking();
      fail_the_booking({"40001"}, "PostgreSQL answers 40001 to COMMIT");
      if (harness_.route().route.retry.max_attempts > 1)
        fail_the_booking({"57P01"}, "the connection to PostgreSQL is lost at COMMIT");
    }
    other_side_.forget();
    harness_.restore();
    deliver();
  }
  look_at_the_session();
  return std::move(report_);
}

}  // namespace

Report examine_calls(Harness::Implementation& harness, const Record& record,
                     const OtherSide& other_side, Wanted wanted) {
  return EveryCall(harness, record, other_side, wanted).run();
}

}  // namespace hapax::testing
