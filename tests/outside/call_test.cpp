// One call: what its ends mean, and when it may begin.
#include "outside/call.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace hapax::outside {
namespace {

using How = Ended::How;

struct Scripted final : OutsideHandler {
  nlohmann::json call(const Message&, const Call&) override {
    ++calls;
    return does();
  }
  void book(const Message&, const nlohmann::json&, Context&) override {}
  Verdict reconcile(const Message&, const Call&) override {
    during_reconcile();
    return verdict;
  }
  int calls = 0;
  Verdict verdict = Verdict::not_done();
  std::function<nlohmann::json()> does = [] { return nlohmann::json{{"charge", 1}}; };
  std::function<void()> during_reconcile = [] {};
};

// With 200,000 levels a writer that recurses ends the process.
nlohmann::json nested(int levels) {
  nlohmann::json value;
  for (int level = 0; level < levels; ++level) value = nlohmann::json::array({std::move(value)});
  return value;
}

struct MakeCall : testing::Test {
  Ended make(Step step = Step::call) {
    const Message message({.payload = "{"});
    return make_call(handler, message,
                     Call({.key = "k", .token = 1, .deadline = {}, .stop_token = {}}), step,
                     [this] { return may_call; });
  }
  Scripted handler;
  bool may_call = true;
};

TEST(Verdict, OfAnAnswerThatNestsTooDeepThrows) {
  EXPECT_THROW(Verdict::done(nested(200'000)), std::invalid_argument);
}

TEST_F(MakeCall, TellsWhatTheEndMeans) {
  struct Row {
    std::function<nlohmann::json()> does;
    How how;
  };
  const Row table[] = {
      {[] { return nlohmann::json(1); }, How::answered},
      {[]() -> nlohmann::json { throw NotCalled("x"); }, How::not_called},
      {[]() -> nlohmann::json { throw Reject("x"); }, How::refused},
      {[]() -> nlohmann::json { return Message({.payload = "{"}).json(); }, How::no_call},
      {[]() -> nlohmann::json { return Message({}).json(); }, How::no_call},
      {[]() -> nlohmann::json { throw Retry("x"); }, How::failed},
      {[]() -> nlohmann::json { throw std::runtime_error("x"); }, How::failed},
      {[] { return nested(512); }, How::answered},
      {[] { return nested(513); }, How::failed},
      {[] { return nested(200'000); }, How::failed},
      {[]() -> nlohmann::json { throw 1; }, How::failed}};
  for (const Row& row : table) {
    handler.does = row.does;
    EXPECT_EQ(make().how, row.how) << &row - table;
  }
}

TEST_F(MakeCall, CallsWhatIsNotDone) {
  const Ended ended = make(Step::reconcile);
  EXPECT_EQ(ended.how, How::answered);
  EXPECT_TRUE(ended.none_before);
  EXPECT_FALSE(make().none_before);
  EXPECT_EQ(handler.calls, 2);
}

TEST_F(MakeCall, CallsNothingThatIsDoneOrNotKnown) {
  handler.verdict = Verdict::done({{"charge", 7}});
  EXPECT_EQ(make(Step::reconcile).text, R"({"charge":7})");
  handler.verdict = Verdict::unknown();
  EXPECT_EQ(make(Step::reconcile).how, How::unknown);
  handler.during_reconcile = [] { throw std::runtime_error("x"); };
  EXPECT_EQ(make(Step::reconcile).how, How::unknown);
  EXPECT_EQ(handler.calls, 0);
}

// The process froze in `reconcile`, and another one has called meanwhile.
TEST_F(MakeCall, BeginsNoCallIfTheLeaseEndedWhileItReconciled) {
  handler.during_reconcile = [this] { may_call = false; };
  EXPECT_EQ(make(Step::reconcile).how, How::not_begun);
  EXPECT_EQ(handler.calls, 0);
}

TEST_F(MakeCall, KeepsAnAnswerThatIsNotUtf8) {
  handler.verdict = Verdict::done("\xff");
  EXPECT_EQ(make(Step::reconcile).how, How::answered);
  handler.does = [] { return nlohmann::json("\xff"); };
  EXPECT_EQ(make().how, How::answered);
}

}  // namespace
}  // namespace hapax::outside
