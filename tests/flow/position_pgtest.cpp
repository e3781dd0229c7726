// Routes with `key: "position"`: PostgreSQL remembers offsets instead of keys. What a message finds
// when it claims its offset, and what a worker that takes the partition sees of an earlier one.
#include <pqxx/pqxx>
#include <thread>

#include "flow/flow_case.hpp"
#include "store/worker/checkpoints.hpp"
#include "support/cutting_proxy.hpp"

namespace hapax::flow {
namespace {

using test::CuttingProxy;

class Position : public FlowCase {
 protected:
  Position() { route.key.sources = {{key::Source::Kind::position, {}}}; }

  store::Taking taking(const std::string& owner) const {
    return {"group", {route.topic, kPartition}, owner, "spec", "booking", 0, true};
  }

  // As a worker does that starts: raises the epoch, and learns whether a transaction is open.
  store::Taken take(const std::string& owner) {
    store::Session session(database.worker());
    store::Taking next = taking(owner);
    const auto row = store::read_checkpoint(session, "group", next.partition);
    next.read_epoch = row ? row->epoch : 0;
    return store::take_partition(session, next).value();
  }

  std::set<std::int64_t> settled_from(std::int64_t start, std::int32_t generation = 1) {
    store::Session session(database.worker());
    const store::TopicPartition partition{route.topic, kPartition};
    return store::read_ahead(session, "group", {{partition, generation, start, true}})[partition]
        .settled;
  }

  std::string rows() {
    return database.value(
        "SELECT string_agg(last || coalesce(earlier::text, ''), ' ' ORDER BY partition, last) FROM "
        "hapax.positions");
  }

  static constexpr std::int32_t kPartition = 3;  // FlowCase's
};

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

TEST_F(Position, AMessageThatNobodyKnowsBelowTheHighestCheckpointHalts) {
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

class PositionBatch : public Position {
 protected:
  PositionBatch() {
    for (const std::string& id : ids) headers.push_back({"id", id});
    for (std::size_t i = 0; i < kMessages; ++i) {
      Message::Parts parts;
      parts.coordinates = {route.topic, static_cast<std::int32_t>(i % 2),
                           static_cast<std::int64_t>(3 * i)};
      parts.payload = "book";
      parts.headers = std::span(&headers[i], 1);
      messages.emplace_back(parts);
    }
  }

  std::vector<Outcome> process_all(Processor& processor, const Body& body = book,
                                   const std::vector<Outcome>& before = {}) {
    CountingHandler handler(body, runs);
    std::vector<Job> jobs = jobs_of(messages, group, handler);
    for (std::size_t i = 0; i < before.size(); ++i) {
      jobs[i].task.in_doubt = before[i].in_doubt;
      jobs[i].task.settled = is_settled(before[i].result);
    }
    return processor.process(jobs);
  }

  static constexpr std::size_t kMessages = 6;
  const std::string group = "group";
  const std::vector<std::string> ids = {"0", "1", "2", "3", "4", "5"};
  std::vector<Header> headers;
  std::vector<Message> messages;
};

TEST_F(PositionBatch, WritesOneRowForEachPartition) {
  Processor processor = make_processor();
  for (const Outcome& outcome : process_all(processor))
    EXPECT_EQ(outcome.result, Result::completed);
  EXPECT_EQ(rows(), "12{12,6} 15{12,6}");
  EXPECT_EQ(count("effects"), 6);
  store::Session session(database.worker());
  auto ahead = store::read_ahead(session, "group",
                                 {{{route.topic, 0}, 1, 6, true}, {{route.topic, 1}, 1, 0, true}});
  EXPECT_EQ((ahead[{route.topic, 0}].settled), (std::set<std::int64_t>{6, 12}));
  EXPECT_EQ((ahead[{route.topic, 1}].settled), (std::set<std::int64_t>{3, 9, 15}));
}

TEST_F(PositionBatch, RunsTheOthersOfAMessageThatIsRejected) {
  Processor processor = make_processor();
  const auto outcomes = process_all(processor, [](const Message& message, Context& context) {
    if (message.offset() == 6) throw Reject("no");
    book(message, context);
  });
  for (std::size_t i = 0; i < kMessages; ++i)
    EXPECT_EQ(outcomes[i].result, i == 2 ? Result::failed : Result::completed) << i;
  EXPECT_EQ(count("effects"), 5);
}

TEST_F(PositionBatch, IsOpenForWhoTakesOneOfItsPartitions) {
  Processor processor = make_processor();
  bool asked = false;
  process_all(processor, [&](const Message& message, Context& context) {
    book(message, context);
    if (std::exchange(asked, true)) return;
    store::Session session(database.worker());
    for (const std::int32_t partition : {0, 1, 2}) {
      store::Taking own = taking("b");
      own.partition.second = partition;
      EXPECT_EQ(store::take_partition(session, own).value().settling, partition < 2) << partition;
    }
  });
  EXPECT_EQ(count("effects"), 6);
}

// All of it is in doubt then, and not only the message whose outcome tells of the loss.
TEST_F(PositionBatch, ALostAnswerToCommitDoublesNoneOfItsMessages) {
  for (const auto cut : {CuttingProxy::Cut::before_forwarding, CuttingProxy::Cut::after_forwarding,
                         CuttingProxy::Cut::after_answer}) {
    database.run("DELETE FROM effects; DELETE FROM hapax.positions");
    CuttingProxy proxy(test::postgres().port());
    store::ConnectOptions through = test::through_port(options, proxy.port());
    Processor processor([&] { return store::Session(through); }, 1);
    proxy.cut_next(";COMMIT", cut);
    std::vector<Outcome> outcomes = process_all(processor);
    const auto settled = [](const Outcome& outcome) { return is_settled(outcome.result); };
    for (int round = 0; round < 9 && !std::ranges::all_of(outcomes, settled); ++round)
      outcomes = process_all(processor, book, outcomes);
    EXPECT_TRUE(std::ranges::all_of(outcomes, settled));
    EXPECT_EQ(effects().size(), std::string("0=book 1=book 2=book 3=book 4=book 5=book").size());
  }
}

TEST_F(PositionBatch, RunsNothingOfTheOnePartitionThatWasTaken) {
  store::Session session(database.worker());
  std::map<std::int32_t, std::int64_t> epochs;
  for (const std::int32_t partition : {0, 1}) {
    store::Taking own = taking("a");
    own.partition.second = partition;
    epochs[partition] = store::take_partition(session, own).value().epoch;
  }
  store::Taking other = taking("b");
  other.partition.second = 1;
  other.read_epoch = epochs[1];
  store::take_partition(session, other);
  const Body body = book;
  CountingHandler handler(body, runs);
  std::vector<Job> jobs = jobs_of(messages, group, handler);
  for (Job& job : jobs) job.task.epoch = epochs[job.task.message.partition()];
  Processor processor = make_processor();
  const auto outcomes = processor.process(jobs);
  for (std::size_t i = 0; i < kMessages; ++i)
    EXPECT_EQ(outcomes[i].result, i % 2 == 0 ? Result::completed : Result::busy) << i;
  EXPECT_EQ(effects(), "0=book 2=book 4=book");
}

TEST_F(PositionBatch, ACheckpointRemovesTheRowsThatItHasPassed) {
  Processor processor = make_processor();
  process_all(processor);
  database.run("INSERT INTO hapax.positions VALUES ('group', 'payments', 0, 1, 20, '{5}')");
  store::Session session(database.worker());
  store::Taking own = taking("a");
  own.partition.second = 0;
  const auto taken = store::take_partition(session, own).value();
  const std::string incarnation = store::read_store(session).incarnation;
  ASSERT_TRUE(store::agree_start(session, own, {.epoch = taken.epoch, .offset = 0}));
  const auto write = [&](std::int64_t last, std::int64_t next) {
    return store::write_checkpoints(session, "group",
                                    {{own.partition, incarnation, taken.epoch, last, next, true}});
  };
  EXPECT_EQ(write(0, 12).size(), 1U);
  EXPECT_EQ(rows(), "12{12,6} 20{5} 15{12,6}") << "its last offset is not passed yet";
  EXPECT_EQ(write(12, 13).size(), 1U);
  EXPECT_EQ(rows(), "20{5} 15{12,6}");
  EXPECT_EQ(write(12, 30).size(), 0U) << "of a worker that is behind";
  EXPECT_EQ(rows(), "20{5} 15{12,6}");
}

}  // namespace
}  // namespace hapax::flow
