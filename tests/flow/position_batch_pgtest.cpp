// The same in batches: one row for each partition, and all of a batch is in doubt at once.
#include <algorithm>
#include <map>
#include <utility>

#include "flow/position_case.hpp"

namespace hapax::flow {
namespace {

using test::CuttingProxy;

class PositionBatch : public PositionCase {
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
  auto known = store::read_known_messages(
      session, "group", {{{route.topic, 0}, 1, 6, true}, {{route.topic, 1}, 1, 0, true}});
  EXPECT_EQ((known[{route.topic, 0}].settled), (std::set<std::int64_t>{6, 12}));
  EXPECT_EQ((known[{route.topic, 1}].settled), (std::set<std::int64_t>{3, 9, 15}));
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
