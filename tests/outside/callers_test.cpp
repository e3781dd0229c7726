// The last look at the lease, by the thread that calls.
#include "outside/callers.hpp"

#include "outside/kept_in_memory.hpp"

#include <gtest/gtest.h>

#include <future>

namespace hapax::outside {
namespace {

class Counting final : public OutsideHandler {
 public:
  explicit Counting(int& calls) : calls_(calls) {}
  nlohmann::json call(const Message&, const Call&) override { return ++calls_; }
  void book(const Message&, const nlohmann::json&, Context&) override {}

 private:
  int& calls_;
};

// Its step times out, which it catches.
class Swallowing final : public OutsideHandler {
 public:
  nlohmann::json call(const Message&, const Call& call) override {
    try {
      call.step("charge",
                [](std::string_view) -> nlohmann::json { throw std::runtime_error("time-out"); });
    } catch (const std::runtime_error&) {
    }
    throw NotCalled("the next gateway does not accept connections");
  }
  void book(const Message&, const nlohmann::json&, Context&) override {}
};

class LastLook : public testing::Test {
 protected:
  // What became of a call whose key was taken under the lease `of`.
  Ended::How make(store::HolderId of) {
    const Message message({.payload = "{}"});
    CallToMake call;
    call.message = &message;
    call.holder = of;
    std::promise<void> came_back;
    std::vector<std::unique_ptr<OutsideHandler>> handlers;
    if (swallows)
      handlers.push_back(std::make_unique<Swallowing>());
    else
      handlers.push_back(std::make_unique<Counting>(calls));
    KeptInMemory steps;
    Callers callers(std::move(handlers), holder, steps, [&] { came_back.set_value(); });
    callers.add(call);
    came_back.get_future().wait();
    return call.end.how;
  }

  Holder holder{std::chrono::hours(1)};
  int calls = 0;
  bool swallows = false;
};

TEST_F(LastLook, TakesNoCallForNotMadeWhileAStepOfItIsInDoubt) {
  swallows = true;
  holder.lease.granted(Lease::Clock::now());
  holder.id = 2;
  EXPECT_EQ(make(2), Ended::How::failed);
}

// A: the key is taken, and the lease is lost. Another worker takes the key over and calls. This
// process has a new lease by then, and its thread is free.
TEST_F(LastLook, LetsNoCallBeginUnderAnotherLeaseThanItsKeyWasTakenWith) {
  holder.lease.granted(Lease::Clock::now());
  holder.id = 2;
  EXPECT_EQ(make(1), Ended::How::not_begun);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(make(2), Ended::How::answered);
}

TEST_F(LastLook, LetsNoCallBeginWithoutALease) {
  EXPECT_EQ(make(0), Ended::How::not_begun);
  holder.id = 2;
  EXPECT_EQ(make(2), Ended::How::not_begun);
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace hapax::outside
