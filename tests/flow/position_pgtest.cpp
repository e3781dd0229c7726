// Routes with `key: "position"`: PostgreSQL remembers offsets instead of keys. What a message finds
// when it claims its offset, and what a worker that takes the partition sees of an earlier one.
#include <pqxx/pqxx>
#include <thread>

#include "flow/position_case.hpp"

namespace hapax::flow {
namespace {

using test::CuttingProxy;

class Position : public PositionCase {};

TEST_F(Position, RunsAMessageAndKeepsItsOffsetAndNoKey) {
  EXPECT_EQ(process({.offset = 7}).result, Result::completed);
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(count("hapax.idempotency_keys"), 0);
  EXPECT_EQ(database.value("SELECT * FROM hapax.positions"), "group|payments|3|1|7|null");
  EXPECT_EQ(settled_from(0), std::set<std::int64_t>{7});
  EXPECT_EQ(settled_from(8), std::set<std::int64_t>{});
  EXPECT_EQ(settled_from(0, 2), std::set<std::int64_t>{}) << "of a topic that was made again";
}

TEST_F(Position, TwoMessagesWithOneKeyAreTwoMessages) {
  EXPECT_EQ(process({.offset = 1}).result, Result::completed);
  EXPECT_EQ(process({.offset = 2}).result, Result::completed);
  EXPECT_EQ(effects(), "k1=10 k1=10");
}

TEST_F(Position, DoesNotRunWhatWasSettledBeforeThePartitionsStart) {
  EXPECT_EQ(process({.offset = 7}, book, {.settled = true}).result, Result::duplicate);
  EXPECT_EQ(runs, 0);
}

// As a replay of its dead letter does, after the partition was rewound to it.
TEST_F(Position, DoesNotRunWhatWasSettledMeanwhile) {
  EXPECT_EQ(process({.offset = 7}).result, Result::completed);
  const Outcome outcome = process({.offset = 7});
  EXPECT_EQ(outcome.result, Result::again) << outcome.detail;
  EXPECT_TRUE(outcome.in_doubt);
  EXPECT_EQ(process({.offset = 7}, book, {.in_doubt = true}).result, Result::duplicate);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(Position, RunsNothingOfAPartitionThatAnotherWorkerTook) {
  const auto mine = take("a");
  EXPECT_EQ(process({.offset = 1}, book, {.epoch = mine.epoch}).result, Result::completed);
  const auto theirs = take("b");
  EXPECT_EQ(process({.offset = 2}, book, {.epoch = mine.epoch}).reason, "fenced");
  EXPECT_EQ(process({.offset = 2}, book, {.epoch = mine.epoch, .in_doubt = true}).reason, "fenced");
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(process({.offset = 2}, book, {.epoch = theirs.epoch}).result, Result::completed);
}

// A zombie that began before its partition was taken, and commits after.
TEST_F(Position, WhoTakesAPartitionIsToldOfATransactionThatIsOpenAndThenSeesWhatItSettled) {
  const auto mine = take("a");
  const Outcome outcome = process({.offset = 5},
                                  [&](const Message& message, Context& context) {
                                    book(message, context);
                                    EXPECT_TRUE(take("b").settling);
                                  },
                                  {.epoch = mine.epoch});
  EXPECT_EQ(outcome.result, Result::completed);
  const auto theirs = take("b");
  EXPECT_FALSE(theirs.settling);
  EXPECT_EQ(settled_from(0), std::set<std::int64_t>{5});
}

TEST_F(Position, ATransactionOfAnotherPartitionIsNoReasonToWait) {
  const auto mine = take("a");
  process({.offset = 5},
          [&](const Message&, Context&) {
            store::Session session(database.worker());
            store::Taking other = taking("b");
            other.partition.second = kPartition + 1;
            EXPECT_FALSE(store::take_partition(session, other).value().settling);
          },
          {.epoch = mine.epoch});
}

TEST_F(Position, WhatIsInDoubtIsNotRunAgainIfItWasCommitted) {
  EXPECT_EQ(process({.offset = 7}).result, Result::completed);
  EXPECT_EQ(process({.offset = 7}, book, {.in_doubt = true}).result, Result::duplicate);
  EXPECT_EQ(process({.offset = 8}, book, {.in_doubt = true}).result, Result::completed);
  EXPECT_EQ(effects(), "k1=10 k1=10");
}

// The connection is lost, and the server has not noticed yet.
TEST_F(Position, WhatIsInDoubtWaitsUntilTheOldTransactionHasEnded) {
  for (const bool commits : {true, false}) {
    SCOPED_TRACE(commits);
    const std::int64_t offset = commits ? 7 : 8;
    Processor other = make_processor(2);
    Outcome second;
    std::thread waiting;
    const Outcome first =
        process({.offset = offset}, [&](const Message& message, Context& context) {
          book(message, context);
          waiting = std::thread(
              [&] { second = process_on(other, {.offset = offset}, book, {.in_doubt = true}); });
          database.wait_until(
              "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = "
              "current_database()",
              "1");
          if (!commits) throw std::runtime_error("no");
        });
    waiting.join();
    EXPECT_EQ(first.result, commits ? Result::completed : Result::retry);
    EXPECT_EQ(second.result, commits ? Result::duplicate : Result::completed);
  }
  EXPECT_EQ(effects(), "k1=10 k1=10");
}

TEST_F(Position, ALostAnswerToCommitIsDoubtThatTheOffsetSettles) {
  CuttingProxy proxy(test::postgres().port());
  store::ConnectOptions through = test::through_port(options, proxy.port());
  Processor processor([&] { return store::Session(through); }, 1);
  std::int64_t offset = 0;
  for (const auto cut : {CuttingProxy::Cut::before_forwarding, CuttingProxy::Cut::after_forwarding,
                         CuttingProxy::Cut::after_answer}) {
    proxy.cut_next(";COMMIT", cut);
    const Sent sent{.offset = ++offset};
    const Outcome lost = process_on(processor, sent, book);
    EXPECT_FALSE(is_settled(lost.result));
    EXPECT_TRUE(lost.in_doubt);
    EXPECT_TRUE(is_settled(settle(processor, sent, book, {.in_doubt = lost.in_doubt}).result));
  }
  EXPECT_EQ(rows(), "1 2 3");
  EXPECT_EQ(effects(), "k1=10 k1=10 k1=10");
}

// The same message is given up on in the run that is in doubt, because it is its last.
TEST_F(Position, ALostAnswerToCommitIsNoDeadLetter) {
  CuttingProxy proxy(test::postgres().port());
  store::ConnectOptions through = test::through_port(options, proxy.port());
  Processor processor([&] { return store::Session(through); }, 1);
  route.retry.max_attempts = 1;
  proxy.cut_next(";COMMIT", CuttingProxy::Cut::after_answer);
  const Outcome outcome = process_on(processor, {.offset = 1}, book, {.outages = kMaxOutages - 1});
  EXPECT_EQ(outcome.result, Result::duplicate) << outcome.reason;
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(count("hapax.dead_letters"), 0);
}

// Else a run in a batch could make an effect beside the letter.
TEST_F(Position, ALetterInDoubtIsAskedForBeforeTheMessageRunsAgain) {
  CuttingProxy proxy(test::postgres().port());
  store::ConnectOptions through = test::through_port(options, proxy.port());
  Processor processor([&] { return store::Session(through); }, 1);
  const Body reject = [](const Message&, Context&) { throw Reject("no"); };
  proxy.cut_next(";COMMIT", CuttingProxy::Cut::after_answer);
  const Outcome lost = process_on(processor, {.offset = 1}, reject);
  EXPECT_FALSE(is_settled(lost.result));
  EXPECT_TRUE(lost.in_doubt);
  const Outcome next = process_on(processor, {.offset = 1}, book, {.in_doubt = lost.in_doubt});
  EXPECT_EQ(next.reason, "redelivered");
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(count("hapax.dead_letters"), 1);
}

// PostgreSQL may report a cancellation after the COMMIT. So the answer does not tell whether it
// committed.
TEST_F(Position, ACancellationOfTheCommitIsDoubtAndAnErrorOfAStatementIsNone) {
  database.run(
      "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'x' "
      "USING ERRCODE = NEW.note; END $$; CREATE CONSTRAINT TRIGGER fails AFTER INSERT ON effects "
      "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()");
  const auto fails_with = [](const std::string& sqlstate) {
    return [sqlstate](const Message&, Context& context) {
      context.write("INSERT INTO effects (note) VALUES ($1)", sqlstate);
    };
  };
  EXPECT_TRUE(process({.offset = 1}, fails_with("57014")).in_doubt);
  EXPECT_FALSE(process({.offset = 2}, fails_with("23505")).in_doubt);
  EXPECT_FALSE(
      process({.offset = 3}, [](const Message&, Context&) { throw Retry("no"); }).in_doubt);
}

// The start was overtaken before it read. What it would remove is the new owner's.
TEST_F(Position, AStartThatWasOvertakenRemovesNothing) {
  const auto mine = take("a");
  const auto theirs = take("b");
  process({.offset = 5}, book, {.generation = 2, .epoch = theirs.epoch});
  process({.offset = 6}, book, {.epoch = theirs.epoch});
  const auto read = [&](std::int64_t epoch) {
    store::Session session(database.worker());
    store::read_known_messages(session, "group", {{{route.topic, kPartition}, 1, 10, true, epoch}});
  };
  database.run(
      "INSERT INTO hapax.position_changes (group_id, topic, partition, generation, from_offset, "
      "to_offset, cause, who, why) VALUES ('group', 'payments', 3, 1, NULL, 10, 'first_start', "
      "'', ''), ('group', 'payments', 3, 1, 4, 10, 'skip', '', '')");
  read(mine.epoch);
  EXPECT_EQ(count("hapax.positions"), 2);
  read(theirs.epoch);
  EXPECT_EQ(count("hapax.positions"), 0);
}

// The next owner may have run it meanwhile.
TEST_F(Position, AWorkerThatLostThePartitionGivesUpNoMessageThatKilledIt) {
  const auto mine = take("a");
  database.run(
      "INSERT INTO hapax.attempts (group_id, topic, generation, partition, kafka_offset, count, "
      "crashes, last_error, handler, next_try) VALUES ('group', 'payments', 1, 3, 7, 0, 9, '', "
      "'booker', now())");
  const auto theirs = take("b");
  EXPECT_EQ(process({.offset = 7}, book, {.cautious = true, .epoch = mine.epoch}).reason, "fenced");
  EXPECT_EQ(count("hapax.dead_letters"), 0);
  EXPECT_EQ(process({.offset = 7}, book, {.cautious = true, .epoch = theirs.epoch}).reason,
            "crashed");
  EXPECT_EQ(rows(), "7");
}

TEST_F(Position, GivesUpNothingThatWasCommittedInDoubt) {
  EXPECT_EQ(process({.offset = 7}).result, Result::completed);
  const Body reject = [](const Message&, Context&) { throw Reject("no"); };
  EXPECT_EQ(process({.offset = 7}, reject, {.in_doubt = true}).result, Result::duplicate);
  EXPECT_EQ(process({.offset = 7}, reject, {.attempts = 3, .in_doubt = true}).result,
            Result::duplicate);
  EXPECT_EQ(count("hapax.dead_letters"), 0);
}

TEST_F(Position, ADeadLetterIsKeptWithAKeyAndIsRedeliveredAsOne) {
  const Body reject = [](const Message&, Context&) { throw Reject("no"); };
  EXPECT_EQ(process({.offset = 7}, reject).result, Result::failed);
  EXPECT_EQ(count("hapax.dead_letters"), 1);
  EXPECT_EQ(database.value("SELECT status, kafka_offset FROM hapax.idempotency_keys"), "failed|7");
  EXPECT_EQ(settled_from(0), std::set<std::int64_t>{7});
  database.run("DELETE FROM hapax.positions");  // a checkpoint passed it, and it was rewound
  EXPECT_EQ(process({.offset = 7}, book, {.guard_below = 8}).reason, "redelivered");
  EXPECT_EQ(effects(), "");
}

TEST_F(Position, AnUnknownMessageBelowTheHighestCheckpointHalts) {
  const Outcome outcome = process({.offset = 7}, book, {.guard_below = 8});
  EXPECT_EQ(outcome.reason, "unknown_below_highest");
  EXPECT_EQ(count("hapax.positions"), 0);
}

TEST_F(Position, RefusesAResultBecauseNoRowCouldHoldIt) {
  const Outcome outcome = process({.offset = 1}, [](const Message&, Context& context) {
    context.result({{"status", "booked"}});
  });
  EXPECT_EQ(outcome.result, Result::retry);
  EXPECT_NE(outcome.detail.find("keeps no results"), std::string::npos);
}

TEST_F(Position, AHandlerThatCommitsByItselfIsRefused) {
  const Outcome outcome = process({.offset = 1}, [](const Message& message, Context& context) {
    book(message, context);
    context.pqxx().exec("COMMIT");
  });
  EXPECT_EQ(outcome.reason, "handler_ended_transaction");
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(count("hapax.positions"), 0);
}

TEST_F(Position, CommitsAMessageAndTakesTheOffsetOfTheNextInOneRoundTrip) {
  const std::vector<Header> headers = {{"id", "a"}, {"id", "b"}, {"id", "c"}};
  const std::vector<std::string> payloads = {"good", "bad", "good"};
  const std::vector<Message> messages = messages_of(headers, payloads);
  const std::string group = "group";
  const Body body = [](const Message& message, Context& context) {
    context.write("INSERT INTO effects (key, note) VALUES ($1, $2)", *message.header("id"),
                  *message.payload());
    if (*message.payload() == "bad") context.write("SELECT 1 / 0");
  };
  CountingHandler handler(body, runs);
  std::vector<Job> jobs = jobs_of(messages, group, handler);
  Processor processor = make_processor();
  std::vector<Result> results;
  for (std::size_t n = 0; n < jobs.size(); ++n) {
    results.push_back(processor
                          .process(jobs[n].task, handler,
                                   [&]() -> const Task* {
                                     return n + 1 < jobs.size() ? &jobs[n + 1].task : nullptr;
                                   })
                          .result);
    if (!is_settled(results.back())) processor.abandon();
  }
  EXPECT_EQ(results, (std::vector{Result::completed, Result::retry, Result::completed}));
  EXPECT_EQ(effects(), "a=good c=good");
  EXPECT_EQ(rows(), "0 2");
}

}  // namespace
}  // namespace hapax::flow
