// A worker that stood still while its partition went on elsewhere. The key of what it has in hand
// may be free again: retention removed it, or an operator left the message out.
#include "flow/flow_case.hpp"

namespace hapax::flow {
namespace {

enum class How { alone, with_the_next, in_a_batch };

class Fenced : public FlowCase, public testing::WithParamInterface<How> {
 protected:
  std::vector<Outcome> process_all(std::int64_t epoch, int attempts = 0) {
    const std::vector<Header> headers = {{"id", "a"}, {"id", "b"}, {"id", "c"}};
    const std::vector<Message> messages = messages_of(headers);
    const std::string group = "group";
    const Body body = book;
    CountingHandler handler(body, runs);
    std::vector<Job> jobs = jobs_of(messages, group, handler);
    for (Job& job : jobs) {
      job.task.epoch = epoch;
      job.task.attempts = attempts;
    }
    Processor processor = make_processor();
    if (GetParam() == How::in_a_batch) return processor.process(jobs);
    std::vector<Outcome> outcomes;
    for (std::size_t n = 0; n < jobs.size(); ++n)
      outcomes.push_back(processor.process(jobs[n].task, handler, [&]() -> const Task* {
        if (GetParam() == How::alone || n + 1 == jobs.size()) return nullptr;
        if (n == 0 && takes_) take();  // while the first one runs
        return &jobs[n + 1].task;
      }));
    return outcomes;
  }

  // By another worker, or by an operator.
  void take() {
    database.run(
        "INSERT INTO hapax.checkpoints AS c (group_id, topic, partition, key_spec, scope, epoch) "
        "VALUES ('group', '" +
        route.topic +
        "', 0, '', '', 1) ON CONFLICT (group_id, topic, partition) "
        "DO UPDATE SET epoch = c.epoch + 1");
  }

  static void expect_fenced(const std::vector<Outcome>& outcomes, std::size_t from = 0) {
    for (std::size_t n = from; n < outcomes.size(); ++n) {
      EXPECT_EQ(outcomes[n].result, Result::busy) << n;
      EXPECT_EQ(outcomes[n].reason, "fenced") << n;
    }
  }

  bool takes_ = false;  // while the first message runs
};

TEST_P(Fenced, RunsNothingOfAPartitionThatWasTaken) {
  take();
  takes_ = GetParam() == How::with_the_next;
  if (!takes_) take();
  expect_fenced(process_all(1), takes_ ? 1 : 0);
  EXPECT_EQ(effects(), takes_ ? "a=book" : "");
  EXPECT_EQ(count("hapax.idempotency_keys"), takes_ ? 1 : 0);
  takes_ = false;
  for (const Outcome& outcome : process_all(2)) EXPECT_TRUE(is_settled(outcome.result));
  EXPECT_EQ(effects(), "a=book b=book c=book");
}

TEST_P(Fenced, TakesNoKeyOverThatAnotherMessageFailedWith) {
  for (const char* key : {"a", "b", "c"})
    settle({.key = key, .offset = 20 + key[0]},
           [](const Message&, Context&) { throw Reject("no"); });
  take();
  take();
  expect_fenced(process_all(1));
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.idempotency_keys WHERE status = 'failed'"),
            3);
  for (const Outcome& outcome : process_all(2)) EXPECT_EQ(outcome.result, Result::completed);
  EXPECT_EQ(effects(), "a=book b=book c=book");
}

TEST_P(Fenced, GivesNothingUpOfAPartitionThatWasTaken) {
  take();
  take();
  expect_fenced(process_all(1, 100));
  EXPECT_EQ(count("hapax.dead_letters"), 0);
  EXPECT_EQ(count("hapax.idempotency_keys"), 0);
}

INSTANTIATE_TEST_SUITE_P(Each, Fenced,
                         testing::Values(How::alone, How::with_the_next, How::in_a_batch));

}  // namespace
}  // namespace hapax::flow
