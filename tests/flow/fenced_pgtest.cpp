// A worker that stood still while its partition went on elsewhere. The key of what it has in hand
// may be free again: retention removed it, or an operator left the message out.
#include "flow/flow_case.hpp"

namespace hapax::flow {
namespace {

enum class How { alone, with_the_next, in_a_batch };

class Fenced : public FlowCase, public testing::WithParamInterface<How> {
 protected:
  std::vector<Outcome> process(std::int64_t epoch) {
    const std::vector<Header> headers = {{"id", "a"}, {"id", "b"}, {"id", "c"}};
    const std::vector<Message> messages = messages_of(headers);
    const std::string group = "group";
    const Body body = book;
    CountingHandler handler(body, runs);
    std::vector<Job> jobs = jobs_of(messages, group, handler);
    for (Job& job : jobs) job.task.epoch = epoch;
    Processor processor = make_processor();
    if (GetParam() == How::in_a_batch) return processor.process(jobs);
    std::vector<Outcome> outcomes;
    for (std::size_t n = 0; n < jobs.size(); ++n)
      outcomes.push_back(processor.process(jobs[n].task, handler, [&]() -> const Task* {
        if (GetParam() == How::alone || n + 1 == jobs.size()) return nullptr;
        if (n == 0) take();  // while the first one runs
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
};

TEST_P(Fenced, RunsNothingOfAPartitionThatWasTaken) {
  take();
  if (GetParam() != How::with_the_next) take();
  const std::vector<Outcome> outcomes = process(1);
  const bool first_runs = GetParam() == How::with_the_next;
  for (std::size_t n = first_runs ? 1 : 0; n < outcomes.size(); ++n) {
    EXPECT_EQ(outcomes[n].result, Result::busy) << n;
    EXPECT_EQ(outcomes[n].reason, "fenced") << n;
  }
  EXPECT_EQ(effects(), first_runs ? "a=book" : "");
  EXPECT_EQ(count("hapax.idempotency_keys"), first_runs ? 1 : 0);
  for (const Outcome& outcome : process(2)) EXPECT_TRUE(is_settled(outcome.result));
  EXPECT_EQ(effects(), "a=book b=book c=book");
}

INSTANTIATE_TEST_SUITE_P(Each, Fenced,
                         testing::Values(How::alone, How::with_the_next, How::in_a_batch));

}  // namespace
}  // namespace hapax::flow
