// Spans of calls to the outside: one for each call, and the other side can go on with it.
#include <gtest/gtest.h>

#include <future>

#include "outside/callers.hpp"
#include "outside/kept_in_memory.hpp"
#include "support/collector.hpp"
#include "traces/message_with.hpp"

namespace hapax::outside {
namespace {

using nlohmann::json;
using support::attribute;

class Calling final : public OutsideHandler {
 public:
  explicit Calling(std::string& handed_on) : handed_on_(handed_on) {}
  json call(const Message&, const Call& about) override {
    handed_on_ = about.traceparent();
    throw NotCalled("no connection");
  }
  void book(const Message&, const json&, Context&) override {}
  Verdict reconcile(const Message&, const Call& about) override {
    handed_on_ = about.traceparent();
    return Verdict::done(1);
  }

 private:
  std::string& handed_on_;
};

class CallSpans : public testing::Test {
 protected:
  // What the call was given, and what became of it.
  CallToMake& make(Step step, const Message& message, traces::Tracer* with) {
    holder.id = call.holder = 1;
    holder.lease.granted(Lease::Clock::now());
    std::promise<void> came_back;
    std::vector<std::unique_ptr<OutsideHandler>> handlers;
    handlers.push_back(std::make_unique<Calling>(handed_on));
    call.message = &message;
    call.step = step;
    KeptInMemory steps;
    Callers callers(
        std::move(handlers), holder, steps, [&] { came_back.set_value(); }, "charges", with);
    callers.add(call);
    came_back.get_future().wait();
    return call;
  }

  support::Collector collector;
  observe::Metrics metrics{{}};
  traces::Tracer tracer{{collector.target(), {"group", "w", ""}, traces::Parent::producer, 1},
                        metrics};
  Holder holder{std::chrono::hours(1)};
  CallToMake call;
  std::string handed_on;
};

TEST_F(CallSpans, TellOfTheCallAndAreHandedOn) {
  const traces::MessageWith message(7, {{"traceparent", traces::kSampled}});
  EXPECT_EQ(make(Step::call, *message, &tracer).end.how, Ended::How::not_called);
  const json span = collector.await(1, "call payments")[0];
  EXPECT_EQ(span.at("kind"), 3);
  EXPECT_EQ(span.at("traceId"), traces::kProducerTrace);
  EXPECT_EQ(span.at("parentSpanId"), traces::kProducerSpan);
  EXPECT_EQ(attribute(span, "hapax.outcome"), "not_called");
  EXPECT_EQ(attribute(span, "hapax.handler"), "charges");
  EXPECT_EQ(attribute(span, "messaging.kafka.offset"), "7");
  EXPECT_EQ(attribute(span, "messaging.system"), nullptr) << "the other side is not Kafka";
  EXPECT_EQ(span.at("status").at("code"), 2);
  const std::string id = span.at("spanId");
  EXPECT_EQ(handed_on, std::string("00-") + traces::kProducerTrace + "-" + id + "-01");
  ASSERT_TRUE(call.trace) << "the dead letter names the trace, too";
  EXPECT_EQ(traces::hex(call.trace->context.span_id), id);
}

TEST_F(CallSpans, TellOfAQuestionToo) {
  const traces::MessageWith message;
  EXPECT_EQ(make(Step::reconcile, *message, &tracer).end.how, Ended::How::answered);
  const json span = collector.await(1, "call payments")[0];
  EXPECT_EQ(attribute(span, "hapax.outcome"), "answered");
  EXPECT_FALSE(span.contains("status"));
  EXPECT_NE(handed_on.find(span.at("spanId").get<std::string>()), std::string::npos);
}

TEST_F(CallSpans, WithoutTracesTheProducersIsHandedOn) {
  const traces::MessageWith message(7, {{"traceparent", traces::kSampled}});
  make(Step::call, *message, nullptr);
  EXPECT_EQ(handed_on, traces::kSampled);
  EXPECT_FALSE(call.trace);
}

}  // namespace
}  // namespace hapax::outside
