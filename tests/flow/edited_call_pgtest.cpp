// A replay with an edited payload has called, and is not done. Only that payload goes on with the
// call.
#include <gmock/gmock.h>

#include "flow/replay_call_case.hpp"
#include "flow/verdicts.hpp"

namespace hapax::flow {
namespace {

class EditedCall : public CallOfAReplay {
 protected:
  EditedCall() {
    route.outside->repeat = config::Repeat::idempotent;
    route.outside->remembers = 1h;
    cancel();
    want(letter, "99");
  }

  void cancel() {
    database.run("UPDATE hapax.replays SET ended_at = now(), outcome = 'cancelled'");
  }
  void make_due() { database.run("UPDATE hapax.replays SET next_try = now()"); }

  // The letter's message comes again, because the checkpoint is behind it. As a worker: takes the
  // key, or lets a lane decide, and books what it has taken with its answer.
  Outcome deliver_again() {
    const std::vector<Header> headers = {{"id", "k1"}};
    Message::Parts parts;
    parts.coordinates = {route.topic, 3, 0};
    parts.payload = "10";
    parts.headers = headers;
    const Message message(parts);
    const std::string group = "group";
    Task task{.route = route, .message = message, .group = group, .has_letter = true};
    const auto identity = std::get<key::Identity>(key::identify(route.key, message, 1));
    const store::CallRequest wanted{{.identity = identity,
                                     .scope = route.key.scope,
                                     .source = task.source(),
                                     .retention = route.retention}};
    const store::Take take = store::take_calls(looker, holder.id, std::span(&wanted, 1)).front();
    takes += take.taken.has_value();
    std::optional<Answered> answered;
    if (take.taken && take.taken->answer) answered = {take.taken->token, *take.taken->answer};
    if (answered) task.answered = &*answered;
    Booking handler(std::make_unique<Books>(body));
    Processor processor = make_processor();
    return processor.process(task, handler);
  }
  void expect_left_to_the_replay() {
    const Outcome outcome = deliver_again();
    EXPECT_EQ(takes, 0) << "called with another payload, or booked it";
    EXPECT_EQ(outcome.reason, kRedelivered);
    EXPECT_EQ(effects(), "");
  }

  const Body body = book;
  int takes = 0;
};

TEST_F(EditedCall, ThatIsAnsweredIsNotBookedByTheLettersMessage) {
  const Body later = [](const Message&, Context&) { throw std::runtime_error("not now"); };
  EXPECT_EQ(replay(later).result, ReplayResult::later);
  ASSERT_EQ(key("status"), "answered");
  expect_left_to_the_replay();
  make_due();
  EXPECT_EQ(replay().result, ReplayResult::completed);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(effects(), "k1=99");
}

TEST_F(EditedCall, ThatFailedIsNotRepeatedByTheLettersMessage) {
  ended = {outside::Ended::How::failed, "cut"};
  EXPECT_EQ(replay().result, ReplayResult::later);
  ASSERT_EQ(key("status"), "started");
  expect_left_to_the_replay();
  make_due();
  ended = {outside::Ended::How::answered, R"({"charge":"c1"})"};
  EXPECT_EQ(replay().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=99");
}

TEST_F(EditedCall, ThatDidNotHappenIsNotMadeByTheLettersMessage) {
  route.outside->repeat = config::Repeat::never;
  ended = {outside::Ended::How::failed, "cut"};
  EXPECT_EQ(replay().result, ReplayResult::failed);
  EXPECT_EQ(decide(store::CallDecision::What::did_not_happen), "");
  EXPECT_EQ(deliver_again().result, Result::busy);
  EXPECT_EQ(takes, 0);
  ended = {outside::Ended::How::answered, R"({"charge":"c1"})"};
  EXPECT_EQ(replay().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=99");
}

TEST_F(EditedCall, IsNotRepeatedByAReplayOfAnotherPayload) {
  ended = {outside::Ended::How::failed, "cut"};
  EXPECT_EQ(replay().result, ReplayResult::later);
  cancel();
  want(letter);
  const Replayed plain = replay();
  EXPECT_EQ(plain.result, ReplayResult::refused);
  EXPECT_THAT(plain.detail, testing::HasSubstr("of another payload, and is not done"));
  EXPECT_EQ(calls, 1);
  want(letter, "99");
  ended = {outside::Ended::How::answered, R"({"charge":"c1"})"};
  EXPECT_EQ(replay().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=99");
}

// Nothing was sent, so there is no call to go on with.
TEST_F(EditedCall, ThatWasNotMadeStandsInNoOtherPayloadsWay) {
  ended = {outside::Ended::How::not_called, "refused"};
  EXPECT_EQ(replay().result, ReplayResult::later);
  ASSERT_EQ(key("status || calls"), "started0");
  cancel();
  want(letter);
  ended = {outside::Ended::How::answered, R"({"charge":"c1"})"};
  EXPECT_EQ(replay().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=10");
}

}  // namespace
}  // namespace hapax::flow
