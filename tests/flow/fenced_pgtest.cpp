// A worker that stood still while its partition went on elsewhere. The key of what it has in hand
// may be free again: retention removed it, or an operator left the message out.
#include "flow/call_account.hpp"
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
        if (n == 0 && takes_) take(0);  // while the first one runs
        return &jobs[n + 1].task;
      }));
    return outcomes;
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
  take(0);
  takes_ = GetParam() == How::with_the_next;
  if (!takes_) take(0);
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
  take(0);
  take(0);
  expect_fenced(process_all(1));
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.idempotency_keys WHERE status = 'failed'"),
            3);
  for (const Outcome& outcome : process_all(2)) EXPECT_EQ(outcome.result, Result::completed);
  EXPECT_EQ(effects(), "a=book b=book c=book");
}

TEST_P(Fenced, GivesNothingUpOfAPartitionThatWasTaken) {
  take(0);
  take(0);
  expect_fenced(process_all(1, 100));
  EXPECT_EQ(count("hapax.dead_letters"), 0);
  EXPECT_EQ(count("hapax.idempotency_keys"), 0);
}

INSTANTIATE_TEST_SUITE_P(Each, Fenced,
                         testing::Values(How::alone, How::with_the_next, How::in_a_batch));

// A failed attempt of theirs would be newer than what the new owner has completed.
TEST_F(FlowCase, AFencedCallCountsNoAttemptAndIsLeftToTheNewOwner) {
  route.outside = config::Outside{.repeat = config::Repeat::idempotent};
  LaneSession session([connect = options] { return store::Session(connect); });
  std::string why;
  ASSERT_TRUE(session.is_reachable(why)) << why;
  const auto holder = store::register_holder(*session, "group", "w", std::chrono::hours(1));
  const std::vector<Header> headers = {{"id", "a"}};
  const std::vector<Message> messages = messages_of(headers);
  const std::string group = "group";
  const Task task{.route = route, .message = messages[0], .group = group, .epoch = 1};
  std::minstd_rand random;
  Attempt attempt(task, session, random,
                  std::get<key::Identity>(key::identify(route.key, messages[0], 1)));
  take(0);
  const store::CallRequest wanted{attempt.request()};
  const store::Take take_of_key =
      store::take_calls(*session, holder, std::span(&wanted, 1)).front();
  ASSERT_TRUE(take_of_key.taken);
  take(0);
  std::optional<store::FailedRuns> failed;
  const Outcome outcome = account_for_call(attempt, *take_of_key.taken,
                                           {outside::Ended::How::failed, "time-out"}, failed);
  EXPECT_EQ(outcome.result, Result::busy);
  EXPECT_EQ(outcome.reason, "fenced");
  EXPECT_TRUE(outcome.to_call);
  EXPECT_EQ(count("hapax.attempts"), 0);
  EXPECT_EQ(database.value("SELECT status, holder FROM hapax.idempotency_keys"), "started|null");
}

}  // namespace
}  // namespace hapax::flow
