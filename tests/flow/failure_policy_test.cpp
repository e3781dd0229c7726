// The table of what follows from a failure, for messages, batches, replays and bookkeeping.
#include "flow/failure_policy.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "hapax/message.hpp"

namespace hapax::flow {

void PrintTo(const Decision& decision, std::ostream* out) {
  *out << name_of(decision.action) << ", else " << name_of(decision.result) << " \""
       << decision.reason << "\"" << (decision.lost_in_handler ? ", lost in handler" : "")
       << (decision.drop_session ? ", drops the session" : "") << (decision.ask ? ", asks" : "");
}

namespace {

using store::Fault;
using store::Phase;
using Of = Failure::Of;
using What = Thrown::What;
using enum store::Phase;

Fault sql(const char* state) { return {Fault::Kind::sql, state, "text"}; }
Fault gone(const char* state = "") { return {Fault::Kind::connection, state, "text"}; }
Fault other() { return {Fault::Kind::other, "", "text"}; }

const Decision kAgain{.result = Result::again, .reason = "serialization"};
const Decision kReconnect{.result = Result::again, .reason = "reconnect", .drop_session = true};
const Decision kInDoubt{
    .result = Result::again, .reason = "reconnect", .lost_in_handler = true, .drop_session = true};
const Decision kBusy{.result = Result::busy, .reason = "key_held"};
const Decision kAway{.result = Result::outage, .reason = "postgres", .drop_session = true};
const Decision kUnexpected{
    .result = Result::halt_partition, .reason = "unexpected_error", .drop_session = true};
const Decision kEnded{
    .result = Result::halt_route, .reason = "handler_ended_transaction", .drop_session = true};
const Decision kRefused{.result = Result::halt_route, .reason = "statement_refused"};
const Decision kCount{.action = Action::count};
const Decision kRejected{.action = Action::give_up, .reason = "rejected"};
const Decision kStale{
    .action = Action::run_on_new_session, .reason = "reconnect", .drop_session = true};
const Decision kTakeTurns{.action = Action::take_turns};
const Decision kAlone{.action = Action::run_alone};
const Decision kSplit{.action = Action::split};
const Decision kWithoutBytes{.action = Action::keep_without_bytes};
const Decision kAccountLater{.result = Result::busy, .reason = "account", .drop_session = true};
const Decision kCannotAccount{
    .result = Result::halt_partition, .reason = "cannot_account", .drop_session = true};

// The connection was lost while the handler ran, or at its COMMIT.
Decision lost(Action action) {
  return {.action = action,
          .result = Result::outage,
          .reason = "postgres",
          .lost_in_handler = true,
          .drop_session = true,
          .ask = true};
}

// Counted if PostgreSQL answers.
Decision counted_or(Decision decision) {
  decision.action = Action::count;
  decision.ask = true;
  return decision;
}

struct Row {
  Failure failure;
  Decision decision;
};

void expect(const std::vector<Row>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(decide(rows[i].failure), rows[i].decision)
        << "row " << i << ": phase " << static_cast<int>(rows[i].failure.phase) << " SQLSTATE "
        << rows[i].failure.fault.sqlstate;
}

// A replay follows the same rules as a message, but for one row.
void expect_of_both(std::vector<Row> rows) {
  expect(rows);
  for (Row& row : rows) row.failure.of = Of::replay;
  expect(rows);
}

TEST(FailurePolicy, AHandlersWordCountsBeforeItsCause) {
  expect_of_both({
      {{.phase = handler, .fault = other(), .thrown = What::reject}, kRejected},
      {{.phase = handler, .fault = sql("40P01"), .thrown = What::reject}, kRejected},
      {{.phase = handler, .fault = other(), .thrown = What::retry}, kCount},
      {{.phase = handler, .fault = gone(), .thrown = What::retry}, kCount},
      {{.phase = handler, .fault = other()}, kCount},
  });
}

TEST(FailurePolicy, ARunThatIsRepeatedAtOnceCountsInTheEnd) {
  expect_of_both({
      {{.phase = claim, .fault = sql("40001")}, kAgain},
      {{.phase = claim, .fault = sql("40001"), .agains = kMaxAgains}, kAgain},
      {{.phase = handler, .fault = sql("40P01"), .agains = kMaxAgains - 1}, kAgain},
      {{.phase = handler, .fault = sql("40P01"), .agains = kMaxAgains}, counted_or(kAgain)},
      {{.phase = complete, .fault = sql("40001"), .agains = kMaxAgains}, counted_or(kAgain)},
      {{.phase = claim, .fault = sql("26000"), .agains = kMaxAgains}, kReconnect},
      {{.phase = handler, .fault = sql("26000")}, kReconnect},
      {{.phase = handler, .fault = sql("42P05"), .agains = kMaxAgains}, counted_or(kReconnect)},
  });
}

TEST(FailurePolicy, AKeyThatIsHeldIsWaitedFor) {
  expect_of_both({
      {{.phase = claim, .fault = sql("55P03")}, kBusy},
      {{.phase = claim, .fault = sql("57014"), .agains = kMaxAgains, .outages = 9}, kBusy},
      {{.phase = handler, .fault = sql("55P03")}, kCount},
  });
}

TEST(FailurePolicy, ARowThatStaysLockedIsWaitedForByAWorkersMessageAndCountsInTheEnd) {
  const Decision again{.result = Result::again, .reason = kRowHeld};
  Failure failure{.phase = handler, .fault = sql("55P03"), .may_wait = true};
  expect({{failure, again}});
  failure.phase = complete;
  failure.agains = kMaxAgains - 1;
  expect({{failure, again}});
  failure.agains = kMaxAgains;
  expect({{failure, counted_or(again)}});
  failure.thrown = What::retry;
  failure.phase = handler;
  expect({{failure, kCount}});
}

TEST(FailurePolicy, ALostConnectionIsAnOutageUnlessTheHandlerMayBeItsCause) {
  expect_of_both({
      {{.phase = claim, .fault = gone(), .outages = 9}, kAway},
      {{.phase = claim, .fault = sql("57P01"), .outages = 9}, kAway},
      {{.phase = handler, .fault = gone()}, lost(Action::count)},
      {{.phase = handler, .fault = sql("57P01")}, lost(Action::end)},
      {{.phase = handler, .fault = sql("57P01"), .outages = 1}, lost(Action::end)},
      {{.phase = handler, .fault = sql("57P01"), .outages = 2}, lost(Action::count)},
      {{.phase = handler, .fault = sql("25P03")}, lost(Action::count)},
      {{.phase = complete, .fault = sql("25P04")}, lost(Action::count)},
      {{.phase = complete, .fault = sql("XX001"), .outages = 1}, lost(Action::end)},
      {{.phase = complete, .fault = sql("XX001"), .outages = 2}, lost(Action::count)},
      {{.phase = handler, .fault = sql("53200"), .outages = 2}, lost(Action::count)},
      {{.phase = handler, .fault = sql("53100"), .outages = 9}, kAway},
      {{.phase = complete, .fault = sql("58030"), .outages = 9}, kAway},
  });
}

TEST(FailurePolicy, ACommitInDoubtRunsAgainAndCountsAtTheThirdLostConnection) {
  const Fault in_doubt{Fault::Kind::in_doubt, "", "text"};
  expect_of_both({
      {{.phase = complete, .fault = in_doubt}, kInDoubt},
      {{.phase = complete, .fault = gone()}, kInDoubt},
      {{.phase = complete, .fault = in_doubt, .agains = kMaxAgains, .outages = 1}, kInDoubt},
      {{.phase = complete, .fault = in_doubt, .outages = 2}, counted_or(kInDoubt)},
      {{.phase = handler, .fault = sql("40003"), .outages = 1}, kInDoubt},
  });
}

TEST(FailurePolicy, WhatAnOldSessionMayHaveCausedRunsOnANewOneFirst) {
  expect_of_both({
      {{.phase = handler, .fault = sql("22P02")}, kStale},
      {{.phase = handler, .fault = sql("22P02"), .session_was_new = true}, kCount},
      {{.phase = handler, .fault = sql("0A000")}, kStale},
      {{.phase = handler, .fault = sql("XX000")}, kStale},
      {{.phase = handler, .fault = sql("42P01")}, kStale},
      {{.phase = complete, .fault = sql("42703")}, kStale},
      {{.phase = handler, .fault = sql("23505")}, kCount},
      {{.phase = complete, .fault = sql("23505")}, kCount},
      {{.phase = handler, .fault = sql("25P02")}, kCount},
  });
}

TEST(FailurePolicy, AStatementThatIsWrongForEveryMessageHaltsTheRouteOfAMessageOnly) {
  Failure refused{.phase = handler, .fault = sql("42P01"), .session_was_new = true};
  expect({{refused, kRefused}});
  refused.fault = sql("58P01");
  refused.session_was_new = false;
  expect({{refused, kRefused}});
  refused.of = Of::replay;
  expect({{refused, kCount}});
}

TEST(FailurePolicy, WhatNoRuleKnowsHalts) {
  expect_of_both({
      {{.phase = claim, .fault = sql("42P01")}, kUnexpected},
      {{.phase = claim, .fault = other(), .session_was_new = true}, kUnexpected},
      {{.phase = handler, .fault = sql("HX001")}, kEnded},
      {{.phase = complete, .fault = sql("HX002"), .outages = 9}, kEnded},
  });
}

TEST(FailurePolicy, TheLetterOfADriftFailsAsBookkeepingThatMayRunAgain) {
  expect({
      {{.phase = account, .fault = sql("40001"), .agains = kMaxAgains}, kAgain},
      {{.phase = account, .fault = sql("55P03")}, kBusy},
      {{.phase = account, .fault = gone(), .outages = 9}, kAway},
      {{.phase = account, .fault = sql("54000"), .letter_bytes = 1}, kWithoutBytes},
      {{.phase = account, .fault = sql("54000")}, kUnexpected},
  });
}

TEST(FailurePolicy, BookkeepingNeverCountsAgainstTheMessage) {
  const auto bookkeeping = [](Fault fault, bool session_was_new = false) {
    return Failure{.of = Of::bookkeeping,
                   .phase = account,
                   .fault = std::move(fault),
                   .session_was_new = session_was_new};
  };
  expect({
      {bookkeeping(gone()), kAway},
      {bookkeeping(sql("25006")), kAway},
      {bookkeeping(sql("40001")), kAccountLater},
      {bookkeeping(sql("26000")), kAccountLater},
      {bookkeeping(sql("55P03")), kAccountLater},
      {bookkeeping({Fault::Kind::in_doubt, "", ""}), kAccountLater},
      {bookkeeping(sql("42P01")), kCannotAccount},
      {bookkeeping(sql("HX001")), kCannotAccount},
      {bookkeeping(other()), kCannotAccount},
      {bookkeeping(sql("XX000")), kAccountLater},
      {bookkeeping(sql("XX000"), true), kCannotAccount},
  });
}

TEST(FailurePolicy, ALetterThatIsTooLargeIsKeptWithoutItsMessage) {
  const auto letter = [](const char* state, std::optional<std::size_t> bytes) {
    return Failure{.of = Of::bookkeeping,
                   .phase = account,
                   .fault = sql(state),
                   .session_was_new = true,
                   .letter_bytes = bytes};
  };
  constexpr std::size_t kMany = 64UL << 20U;
  expect({
      {letter("54000", 0), kWithoutBytes},
      {letter("22001", 1), kWithoutBytes},
      {letter("XX000", kMany), kWithoutBytes},
      {letter("XX000", kMany - 1), kCannotAccount},
      {letter("54000", std::nullopt), kCannotAccount},
      {letter("55P03", kMany), kAccountLater},
  });
}

// Of a segment; `known`: whose handler failed.
Failure batch(Phase phase, Fault fault, bool known = false) {
  return {.of = Of::batch, .phase = phase, .fault = std::move(fault), .handler_is_known = known};
}

TEST(FailurePolicy, OfABatchThatMetOthersTakesTurns) {
  Failure row_lock = batch(handler, sql("55P03"), true);
  expect({
      {batch(claim, sql("40P01")), kTakeTurns},
      {batch(handler, sql("40001"), true), kTakeTurns},
      {batch(claim, sql("55P03")), kTakeTurns},
      {row_lock, kTakeTurns},
      {batch(complete, sql("55P03")), kTakeTurns},
  });
  row_lock.takes_turns = true;
  expect({{row_lock, kAlone}});
}

TEST(FailurePolicy, OfABatchSetsApartTheHandlerThatFailed) {
  Failure own = batch(handler, other(), true);
  expect({
      {own, kCount},
      {batch(handler, sql("23505"), true), kAlone},
      {batch(handler, sql("42P01"), true), kAlone},
      {batch(handler, sql("22P02"), true), kAlone},
  });
  own.thrown = What::retry;
  expect({{own, kCount}});
  own.last_run = true;
  expect({{own, kAlone}});
  own.last_run = false;
  own.thrown = What::reject;
  expect({{own, kAlone}});
}

TEST(FailurePolicy, OfABatchIsSplitIfItsCauseIsNotKnown) {
  expect({
      {batch(handler, sql("23505")), kSplit},
      {batch(complete, sql("23505")), kSplit},
      {batch(claim, sql("42P01")), kSplit},
      {batch(claim, other()), kSplit},
  });
}

TEST(FailurePolicy, OfABatchThatLostItsConnectionAsksWhetherPostgresIsThere) {
  Decision away_in_claim = kAway;
  away_in_claim.ask = true;
  Decision split_in_claim = away_in_claim;
  split_in_claim.action = Action::split;
  expect({
      {batch(claim, gone()), away_in_claim},
      {batch(claim, sql("57P01")), split_in_claim},
      {batch(handler, gone(), true), lost(Action::run_alone)},
      {batch(handler, sql("25P03"), true), lost(Action::run_alone)},
      {batch(handler, gone()), lost(Action::split)},
      {batch(complete, gone()), lost(Action::split)},
      {batch(complete, {Fault::Kind::in_doubt, "", ""}), lost(Action::split)},
      {batch(handler, sql("53100"), true), kAway},
  });
}

TEST(FailurePolicy, OfABatchWhoseSessionIsSpoiltRunsAgainAlone) {
  expect({
      {batch(claim, sql("26000")), kInDoubt},
      {batch(handler, sql("42P05"), true), kInDoubt},
      {batch(complete, sql("HX002")), kEnded},
      {batch(handler, sql("HX001"), true), kEnded},
  });
}

TEST(FailurePolicy, AnEndingHoldsWhatTheDecisionAndTheFaultTell) {
  const Outcome busy = ending(kBusy, sql("55P03"), 2);
  EXPECT_EQ(busy.result, Result::busy);
  EXPECT_EQ(busy.reason, "key_held");
  EXPECT_EQ(busy.detail, "text");
  EXPECT_EQ(busy.sqlstate, "55P03");
  EXPECT_EQ(busy.wait, kKeyHeldWait);
  EXPECT_EQ(busy.attempts, 2);
  EXPECT_FALSE(busy.lost_in_handler);
  const Outcome in_doubt = ending(kInDoubt, gone(), 0);
  EXPECT_TRUE(in_doubt.lost_in_handler);
  EXPECT_EQ(in_doubt.wait, std::chrono::milliseconds(0));
}

TEST(FailurePolicy, ReadsWhatAHandlerThrew) {
  const auto thrown = [](const auto& error) { return thrown_by(std::make_exception_ptr(error)); };
  EXPECT_EQ(thrown(Reject("no")).what, What::reject);
  EXPECT_EQ(thrown(Retry("soon", std::chrono::seconds(2))).what, What::retry);
  EXPECT_EQ(thrown(Retry("soon", std::chrono::seconds(2))).after, std::chrono::seconds(2));
  EXPECT_EQ(thrown(std::runtime_error("oh")).what, What::error);
  const store::DatabaseError cause(sql("23505"));
  EXPECT_EQ(thrown(cause).kept(), sql("23505"));
  try {
    try {
      throw cause;
    } catch (...) {
      std::throw_with_nested(Reject("no"));
    }
  } catch (...) {
    const Thrown rejected = thrown_by(std::current_exception());
    EXPECT_EQ(rejected.what, What::reject);
    EXPECT_EQ(rejected.fault.sqlstate, "23505");
    EXPECT_EQ(rejected.kept(), (Fault{Fault::Kind::other, "", "no: text"}));
  }
}

}  // namespace
}  // namespace hapax::flow
