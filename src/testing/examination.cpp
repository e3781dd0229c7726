#include "testing/examination.hpp"

#include <stdexcept>

namespace hapax::testing {

Examination::Examination(Harness::Implementation& harness, const Record& record, Wanted wanted)
    : harness_(harness), record_(record), wanted_(wanted), before_(harness.tables()) {
  for (const std::string& column : harness_.options().ignored_columns) {
    if (!before_.contains(column.substr(0, column.rfind('.'))))
      throw std::runtime_error("Options::ignored_columns names \"" + column +
                               "\", and there is no such table; write public.payments.number");
    without_.insert(column);
  }
  for (const std::string& table : harness_.options().duplicate_tables)
    if (!before_.contains(table))
      throw std::runtime_error("Options::duplicate_tables names \"" + table +
                               "\", and there is no such table; write public.replies");
  harness_.forget_leaks();
  harness_.save();
}

void Examination::way(const std::string& name, const Deliver& deliver) {
  harness_.restore();
  same_way(name, deliver);
}

void Examination::same_way(const std::string& name, const Deliver& deliver) {
  Report::Way way{name, {}};
  try {
    deliver(way.problems);
  } catch (const std::exception& error) {
    way.problems.emplace_back(error.what());
  }
  report_.ways.push_back(std::move(way));
}

void Examination::keep_first(Problems& problems) {
  report_.once = deliver();
  after_ = harness_.tables();
  report_.effects = changed_tables(before_, after_);
  for (const std::string& column : times_in(after_, report_.effects))
    if (!without_.contains(column)) report_.varying.push_back(column);
  if (report_.once.result == Result::waiting || report_.once.result == Result::halted)
    problems.push_back("it does not settle: " + report_.once.text());
  else if (report_.once.result == Result::duplicate)
    problems.emplace_back(
        "its key was completed before: give each examined record a key of its own");
  else if (report_.once.result != Result::completed && wanted_ == Wanted::effect)
    problems.push_back("it does not complete, so it has no effect: " + report_.once.text());
  if (const int others = harness_.other_sessions(); others > 0)
    problems.push_back(
        "the handler holds " + std::to_string(others) +
        (others == 1 ? " connection" : " connections") +
        " of its own to the database: what it writes there stays when the message's transaction "
        "is rolled back");
}

bool Examination::can_send_again() const {
  return harness_.key_at(record_, 0) == harness_.key_at(record_, 1);
}

void Examination::expect_same_effect(Problems& problems) {
  const std::size_t before = problems.size();
  expect_contents(
      after_, "the effect is another one, as if it depended on memory, time or chance:", problems);
  if (problems.size() > before)
    problems.emplace_back("if a column may differ, name it in Options::ignored_columns");
}

void Examination::expect_end(const Outcome& outcome, Problems& problems) const {
  if (outcome.result != report_.once.result)
    problems.push_back("it ends as " + outcome.text() + ", delivered once as " +
                       report_.once.text());
}

void Examination::expect_contents(const Tables& expected, const std::string& when,
                                  Problems& problems) {
  expect_contents(expected, harness_.tables(), when, problems);
}

void Examination::expect_contents(const Tables& expected, const Tables& found,
                                  const std::string& when, Problems& problems) const {
  for (const std::string& difference : differences(before_, expected, found, without_))
    problems.push_back(when + " " + difference);
}

void Examination::expect_contents_after_a_duplicate(Problems& problems) {
  if (!harness_.lane().handler().wants_duplicates())
    return expect_contents(after_, "after that", problems);
  Tables expected = after_, found = harness_.tables();
  for (const std::string& table : harness_.options().duplicate_tables) {
    expected.erase(table);
    found.erase(table);
  }
  const std::size_t before = problems.size();
  expect_contents(expected, found, "after on_duplicate", problems);
  if (problems.size() > before)
    problems.emplace_back(
        "if on_duplicate is to change a table, name it in Options::duplicate_tables");
}

void Examination::look_at_the_session() {
  same_way("the session afterwards", [&](Problems& problems) {
    for (const std::string& leak : harness_.leaks())
      problems.push_back(
          "the handler leaves " + leak +
          " behind; use SET LOCAL, ON COMMIT DROP, pg_advisory_xact_lock and the like");
  });
}

}  // namespace hapax::testing
