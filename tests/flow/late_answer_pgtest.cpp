// Answers that come once their calls were given up on as unknown. An edited payload had called: no
// decision and no other replay takes that for a call of the letter's own payload.
#include <gmock/gmock.h>

#include "flow/replay_call_case.hpp"

namespace hapax::flow {
namespace {

class LateAnswer : public CallOfAReplay {
 protected:
  LateAnswer() { ended = {outside::Ended::How::failed, "cut"}; }

  // Of a step first, then of the call.
  void answer_late(const std::string& key) {
    const std::string scope = route.key.scope, answer = R"({"charge":"late"})";
    const key::Identity identity{key, "", {}};
    const std::string its = " FROM hapax.idempotency_keys WHERE key = '" + key + "'";
    const auto token = std::stoll(database.value("SELECT token" + its));
    const store::KeptSteps before,
        done{.answers = {{"charge", "1"}},
             .payload = database.value(
                 "SELECT fingerprint_rule || ' ' || encode(fingerprint, 'hex')" + its)};
    const store::StepsToKeep step{identity, scope, token, done, before};
    EXPECT_EQ(store::keep_steps(looker, std::span(&step, 1)).front(), store::Kept::superseded);
    const store::KeptAnswer late{identity, scope, token, answer};
    EXPECT_EQ(store::keep_answers(looker, std::span(&late, 1)).front(), store::Kept::superseded);
    EXPECT_EQ(std::stoll(database.value("SELECT token" + its)), token + 2);
  }
};

// Its worker's lease was over, so another one gave the call up as unknown. Then the answer came.
TEST_F(LateAnswer, IsBookedWithThePayloadThatCalled) {
  database.run("UPDATE hapax.replays SET ended_at = now(), outcome = 'cancelled'");
  want(letter, "99");
  EXPECT_EQ(replay().result, ReplayResult::failed);
  answer_late("k1");
  EXPECT_EQ(decide(store::CallDecision::What::happened), "");
  EXPECT_EQ(replay().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=99");
}

TEST_F(LateAnswer, LetsNoOtherReplayCallWhileItsCallIsUnknown) {
  give_up_on_one_with_its_key_inside();
  want(letter, R"({"id": "k2"})");
  EXPECT_EQ(replay().result, ReplayResult::failed);
  answer_late("k2");
  want(letter);
  const Replayed plain = replay();
  EXPECT_EQ(plain.result, ReplayResult::refused);
  EXPECT_THAT(plain.detail, testing::HasSubstr("called under the key \"k2\""));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace hapax::flow
