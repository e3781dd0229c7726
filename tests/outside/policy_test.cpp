// The table of calls: what follows from what PostgreSQL knows, and from how a call came back.
#include <gtest/gtest.h>

#include "outside/policy.hpp"

namespace hapax::outside {
namespace {

using config::Repeat;
using How = Ended::How;
using namespace std::chrono_literals;

config::Outside rules(Repeat repeat) { return {.repeat = repeat, .remembers = 10s}; }

struct Planned {
  Repeat repeat;
  History history;
  Step step;
};

constexpr Repeat kAll[] = {Repeat::idempotent, Repeat::queryable, Repeat::never};

TEST(CallPolicy, CallsWhatWasNeverCalled) {
  for (const Repeat repeat : kAll)
    for (const int calls : {0, 1})
      EXPECT_EQ(plan(rules(repeat), {.calls = calls}, 3).step, Step::call);
}

TEST(CallPolicy, BooksAnAnswerInEachCase) {
  for (const Repeat repeat : kAll)
    EXPECT_EQ(plan(rules(repeat), {.calls = 9, .crashes = 9, .age = 1h, .answered = true}, 3).step,
              Step::book);
}

TEST(CallPolicy, RepeatsOnlyAsDeclared) {
  const Planned table[] = {{Repeat::idempotent, {.calls = 2, .age = 9'999ms}, Step::call},
                           {Repeat::idempotent, {.calls = 2, .age = 10s}, Step::give_up},
                           {Repeat::queryable, {.calls = 2, .age = 1h}, Step::reconcile},
                           {Repeat::never, {.calls = 2}, Step::give_up},
                           {Repeat::idempotent, {.calls = 2, .crashes = 3}, Step::call},
                           {Repeat::idempotent, {.calls = 5, .crashes = 4}, Step::give_up},
                           {Repeat::queryable, {.calls = 5, .crashes = 4}, Step::give_up}};
  for (const Planned& row : table) {
    const Plan planned = plan(rules(row.repeat), row.history, 3);
    EXPECT_EQ(planned.step, row.step) << static_cast<int>(row.repeat) << " " << row.history.calls;
    EXPECT_EQ(planned.why.empty(), planned.step != Step::give_up) << "a person must read why";
  }
}

// PostgreSQL lost its tail: the first take that it knows may be the second one.
TEST(CallPolicy, TakesAnOperationInDoubtForOneThatWasCalledAsLongAgoAsItsMessageCame) {
  const Planned table[] = {
      {Repeat::idempotent, in_doubt({}, 9s), Step::call},
      {Repeat::idempotent, in_doubt({}, 10s), Step::give_up},
      {Repeat::idempotent, in_doubt({.calls = 2, .age = 10s}, 1s), Step::give_up},
      {Repeat::queryable, in_doubt({}, 1h), Step::reconcile},
      {Repeat::never, in_doubt({}, 0s), Step::give_up},
      {Repeat::never, in_doubt({.answered = true}, 0s), Step::book}};
  for (const Planned& row : table)
    EXPECT_EQ(plan(rules(row.repeat), row.history, 3).step, row.step)
        << static_cast<int>(row.repeat);
  EXPECT_EQ(in_doubt({.calls = 7}, 0s).calls, 7);
}

TEST(CallPolicy, NeverFailsAKeyThatMayHaveBeenCalled) {
  for (const Repeat repeat : kAll)
    for (const How how : {How::answered, How::refused, How::not_called, How::no_call,
                          How::not_begun, How::failed, How::unknown})
      for (const int calls : {1, 2})
        for (const bool exhausted : {false, true}) {
          const Then then = after(rules(repeat), {how}, calls, exhausted);
          EXPECT_EQ(then == Then::fail, how == How::not_called && calls == 1 && exhausted);
          EXPECT_EQ(then == Then::reject, how == How::no_call && calls == 1);
        }
}

// reconcile has told of the earlier ones.
TEST(CallPolicy, FailsAKeyWhoseEarlierCallsAreNotDone) {
  const auto then = [](How how, bool exhausted) {
    return after(rules(Repeat::queryable), {.how = how, .none_before = true}, 2, exhausted);
  };
  EXPECT_EQ(then(How::not_called, true), Then::fail);
  EXPECT_EQ(then(How::no_call, false), Then::reject);
  EXPECT_EQ(then(How::failed, true), Then::give_up);
}

TEST(CallPolicy, DoesAfterACallWhatItsEndAllows) {
  struct Row {
    Repeat repeat;
    How how;
    int calls;
    bool exhausted;
    Then then;
  };
  const Row table[] = {{Repeat::never, How::answered, 1, true, Then::keep_answer},
                       {Repeat::never, How::refused, 1, false, Then::refuse},
                       {Repeat::never, How::failed, 1, false, Then::give_up},
                       {Repeat::never, How::not_called, 1, false, Then::try_again},
                       {Repeat::never, How::not_begun, 1, true, Then::put_back},
                       {Repeat::never, How::no_call, 1, false, Then::reject},
                       {Repeat::idempotent, How::no_call, 2, false, Then::give_up},
                       {Repeat::idempotent, How::failed, 1, false, Then::try_again},
                       {Repeat::idempotent, How::failed, 1, true, Then::give_up},
                       {Repeat::idempotent, How::not_called, 1, true, Then::fail},
                       {Repeat::idempotent, How::not_called, 2, true, Then::give_up},
                       {Repeat::queryable, How::failed, 1, false, Then::try_again},
                       {Repeat::queryable, How::unknown, 2, false, Then::try_again},
                       {Repeat::queryable, How::unknown, 2, true, Then::give_up}};
  for (const Row& row : table)
    EXPECT_EQ(after(rules(row.repeat), {row.how}, row.calls, row.exhausted), row.then)
        << static_cast<int>(row.repeat) << " " << static_cast<int>(row.how);
}

}  // namespace
}  // namespace hapax::outside
