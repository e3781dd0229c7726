// A wait is no attempt, so the worker itself must tell of one that lasts.
#include <gtest/gtest.h>

#include "flow/verdicts.hpp"
#include "worker/settler.hpp"

namespace hapax::worker {
namespace {

using flow::Outcome;
using std::chrono::seconds;

class Waits : public testing::Test {
 protected:
  Waits() : settler_(make_setup()) {
    Beginning beginning;
    beginning.epoch = 1;
    partition_->begin(beginning);
    const std::string payload = "{}";
    Item item;
    item.record =
        kafka::Record::copy(Message::Parts{.coordinates = {"payments", 3, 0}, .payload = payload});
    partition_->receive(0, item.record->bytes());
    work_.partition = partition_;
    work_.items.push_back(std::move(item));
  }

  // What the log has of it.
  std::string after(seconds since_the_first, Outcome outcome) {
    testing::internal::CaptureStderr();
    settler_.settle(std::span(&work_, 1), std::span(&outcome, 1),
                    Clock::time_point(seconds(1000) + since_the_first));
    return testing::internal::GetCapturedStderr();
  }

  LaneSetup& make_setup() {
    setup_.route_metrics.push_back(metrics_.route("payments", text_));
    setup_.breakers.emplace_back(0);
    return setup_;
  }

  const std::string text_ = "text";
  flow::Route route_{.topic = "payments"};
  observe::Health health_;
  observe::Metrics metrics_{{}};
  PostgresState postgres_{health_, metrics_, seconds(0)};
  Notices notices_;
  Dispatcher dispatcher_;
  LaneSetup setup_{text_, text_, {}, dispatcher_, notices_, postgres_, metrics_, {}, {}};
  std::shared_ptr<Partition> partition_ =
      std::make_shared<Partition>(TopicPartition("payments", 3), route_, 0);
  Work work_;
  Settler settler_;
};

const Outcome kStarted = flow::to_call("key_started", 0, flow::kKeyHeldWait);

TEST_F(Waits, OfAMinuteAreToldOnceInTheLogAndWhileTheyLastInTheReason) {
  EXPECT_EQ(after(seconds(0), kStarted), "");
  EXPECT_EQ(after(seconds(59), kStarted), "");
  EXPECT_EQ(partition_->waits_for(), "");
  const std::string told = after(seconds(60), kStarted);
  EXPECT_NE(told.find("message_waits"), std::string::npos) << told;
  EXPECT_NE(told.find("key_started"), std::string::npos) << told;
  EXPECT_EQ(after(seconds(600), kStarted), "");
  EXPECT_NE(partition_->waits_for().find("offset 0"), std::string::npos);
  partition_->set_waits_for(0, {});
  after(seconds(600), kStarted);
  EXPECT_NE(partition_->waits_for(), "") << "it was another message's";
  after(seconds(601), Outcome::of(flow::Result::completed));
  EXPECT_EQ(partition_->waits_for(), "");
}

TEST_F(Waits, ForALockedRowAreToldToo) {
  const Outcome held{.result = flow::Result::again, .reason = std::string(flow::kRowHeld)};
  EXPECT_EQ(after(seconds(0), held), "");
  EXPECT_EQ(work_.items.front().not_before, Clock::time_point(seconds(1001)));
  EXPECT_NE(after(seconds(60), held).find("row_held"), std::string::npos);
  EXPECT_NE(partition_->waits_for(), "");
}

TEST_F(Waits, BeginAgainBehindAnAttempt) {
  after(seconds(0), kStarted);
  after(seconds(50), {.result = flow::Result::retry, .attempts = 1});
  EXPECT_EQ(after(seconds(60), kStarted), "");
  EXPECT_NE(after(seconds(120), kStarted), "");
  after(seconds(121), {.result = flow::Result::outage});
  EXPECT_EQ(partition_->waits_for(), "");
}

}  // namespace
}  // namespace hapax::worker
