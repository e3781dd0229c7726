// Every way in which a message can come, each from the same beginning, held against one delivery.
#include <algorithm>
#include <functional>

#include "testing/contents.hpp"
#include "testing/implementation.hpp"

namespace hapax::testing {
namespace {

// More statements of a handler differ little from these, and each costs a database.
constexpr int kMaxStatementFaults = 6;
constexpr int kWorkers = 4;

using Problems = std::vector<std::string>;

class Examination {
 public:
  Examination(Harness::Implementation& harness, const Record& record)
      : harness_(harness), record_(record) {}

  Report run();

 private:
  // Runs one way from the beginning; what it throws is a problem, too.
  void way(const std::string& name, const std::function<void(Problems&)>& deliver);
  void same_way(const std::string& name, const std::function<void(Problems&)>& deliver);
  bool deliver_once();
  void deliver_once_more();
  void deliver_again();
  void deliver_in_parallel();
  void crash(CrashPoint point, const std::string& name);
  void fail(const Fault& fault);
  void fail_everywhere();
  void look_at_the_session();

  Outcome deliver() { return harness_.run(record_, std::nullopt, false); }
  void expect_end(const Outcome& outcome, Problems& problems) const;
  void expect_again(const Outcome& outcome, Problems& problems);
  void expect_contents(const Tables& expected, const std::string& when, Problems& problems);

  Harness::Implementation& harness_;
  const Record& record_;
  Report report_;
  Columns without_;
  Tables before_;
  Tables after_;  // one delivery
  int statements_ = 0;
};

void Examination::way(const std::string& name, const std::function<void(Problems&)>& deliver) {
  harness_.restore();
  same_way(name, deliver);
}

void Examination::same_way(const std::string& name, const std::function<void(Problems&)>& deliver) {
  Report::Way way{name, {}};
  try {
    deliver(way.problems);
  } catch (const std::exception& error) {
    way.problems.emplace_back(error.what());
  }
  report_.ways.push_back(std::move(way));
}

void Examination::expect_end(const Outcome& outcome, Problems& problems) const {
  if (outcome.result != report_.once.result)
    problems.push_back("it ends as " + outcome.text() + ", delivered once as " +
                       report_.once.text());
}

void Examination::expect_contents(const Tables& expected, const std::string& when,
                                  Problems& problems) {
  for (const std::string& difference : differences(expected, harness_.tables(), without_))
    problems.push_back(when + " " + difference);
}

// False if there is nothing to hold the others against.
bool Examination::deliver_once() {
  same_way("delivered once", [&](Problems& problems) {
    report_.once = deliver();
    statements_ = harness_.lane().probe().statements();
    after_ = harness_.tables();
    report_.effects = changed_tables(before_, after_);
    if (report_.once.result == Result::waiting || report_.once.result == Result::halted)
      problems.push_back("it does not settle: " + report_.once.text());
    else if (report_.once.result == Result::duplicate)
      problems.push_back(
          "its key was completed before: give each examined record a key of its own");
    if (const int others = harness_.other_sessions(); others > 0)
      problems.push_back(
          "the handler holds " + std::to_string(others) +
          (others == 1 ? " connection" : " connections") +
          " of its own to the database: what it writes there stays when the message's transaction "
          "is rolled back");
  });
  return report_.passed();
}

void Examination::deliver_once_more() {
  way("delivered once, in the same process, to a database that was put back",
      [&](Problems& problems) {
        const Outcome outcome = deliver();
        const Tables tables = harness_.tables();
        for (const std::string& column : varying_columns(after_, tables))
          if (without_.insert(column).second) report_.varying.push_back(column);
        expect_end(outcome, problems);
        expect_contents(
            after_,
            "the effect is another one, as if it depended on memory, time or chance:", problems);
      });
}

// As a duplicate; what on_duplicate writes is not compared.
void Examination::expect_again(const Outcome& outcome, Problems& problems) {
  const Result wanted =
      report_.once.result == Result::completed ? Result::duplicate : report_.once.result;
  if (outcome.result != wanted)
    problems.push_back("it is " + outcome.text() + ", not " + name_of(wanted));
  if (!harness_.lane().probe().wants_duplicates()) expect_contents(after_, "after that", problems);
}

void Examination::deliver_again() {
  same_way("then delivered again", [&](Problems& problems) { expect_again(deliver(), problems); });
  same_way("then to a worker that was restarted", [&](Problems& problems) {
    harness_.restart();
    expect_again(deliver(), problems);
  });
  same_way("then sent again by the producer", [&](Problems& problems) {
    expect_again(harness_.run(harness_.sent_again(record_), std::nullopt, false), problems);
  });
}

void Examination::deliver_in_parallel() {
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
    if (!harness_.lane().probe().wants_duplicates())
      expect_contents(after_, "after that", problems);
  });
}

void Examination::crash(CrashPoint point, const std::string& name) {
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

void Examination::fail(const Fault& fault) {
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

void Examination::fail_everywhere() {
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

void Examination::look_at_the_session() {
  same_way("the session afterwards", [&](Problems& problems) {
    for (const std::string& leak : harness_.leaks())
      problems.push_back(
          "the handler leaves " + leak +
          " behind; use SET LOCAL, ON COMMIT DROP, pg_advisory_xact_lock and the like");
  });
}

Report Examination::run() {
  before_ = harness_.tables();
  for (const std::string& column : harness_.ignored_columns()) {
    if (!before_.contains(column.substr(0, column.rfind('.'))))
      throw std::runtime_error("Options::ignored_columns names \"" + column +
                               "\", and there is no such table; write public.payments.number");
    without_.insert(column);
  }
  without_.merge(drawn_columns(before_));
  harness_.save();
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

Report examine_record(Harness::Implementation& harness, const Record& record) {
  return Examination(harness, record).run();
}

}  // namespace hapax::testing
