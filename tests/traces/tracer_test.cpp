// Which runs become spans, and how these belong together.
#include "traces/tracer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "support/collector.hpp"
#include "traces/message_with.hpp"

namespace hapax::traces {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using support::attribute;
using testing::SizeIs;
using testing::UnorderedElementsAre;

// Names that this program may use: OpenTelemetry's model/messaging/{spans,kafka}.yaml and
// resource conventions, as published in 2026, and hapax's own.
const std::set<std::string> kKnown = {"messaging.system",
                                      "messaging.operation.name",
                                      "messaging.operation.type",
                                      "messaging.destination.name",
                                      "messaging.destination.partition.id",
                                      "messaging.consumer.group.name",
                                      "messaging.client.id",
                                      "messaging.batch.message_count",
                                      "messaging.kafka.offset",
                                      "messaging.kafka.message.tombstone",
                                      "error.type",
                                      "service.name",
                                      "service.version",
                                      "service.instance.id",
                                      "hapax.handler",
                                      "hapax.outcome",
                                      "hapax.replay"};

void expect_known_names(const json& of) {
  for (const json& each : of.value("attributes", json::array()))
    EXPECT_TRUE(kKnown.contains(each.at("key"))) << each;
  for (const json& link : of.value("links", json::array())) expect_known_names(link);
}

class Spans : public testing::Test {
 protected:
  void trace(Parent parent, double ratio = 1) {
    tracer.emplace(Tracer::Setup{collector.target(), {"group", "w", "client-1"}, parent, ratio},
                   metrics);
    runs.emplace(&*tracer);
  }
  const Trace& begin(std::vector<Received> messages) {
    return *runs->begin(messages, "booker", Time::clock::now());
  }
  void end(std::vector<Ended> ends) { runs->end(ends, Time::clock::now()); }
  // One run of one message from its arrival to its end.
  Trace run(const MessageWith& message, const Ended& ended = {"completed"}) {
    const Trace trace = begin({{*message, Time::clock::now() - 5ms}});
    end({ended});
    return trace;
  }
  // All that were sent; ends the tracer.
  std::vector<json> sent(std::size_t count) {
    runs.reset();
    tracer.reset();
    auto spans = collector.await(count, [](const json&) { return true; });
    for (const json& span : spans) expect_known_names(span);
    expect_known_names(collector.resource());
    EXPECT_THAT(spans, SizeIs(count));
    return spans;
  }

  support::Collector collector;
  observe::Metrics metrics{{}};
  std::optional<Tracer> tracer;
  std::optional<Runs> runs;
};

TEST_F(Spans, OfAMessageLinkToItsProducer) {
  trace(Parent::link);
  const MessageWith message(7, {{"traceparent", kSampled}, {"tracestate", "a=1"}});
  const Trace trace = run(message);
  EXPECT_TRUE(trace.is_recorded && !trace.continues);
  const auto spans = sent(2);
  const json& receive = spans[0];
  const json& process = spans[1];
  EXPECT_EQ(receive.at("name"), "poll payments");
  EXPECT_EQ(receive.at("kind"), 3);
  EXPECT_FALSE(receive.contains("parentSpanId"));
  EXPECT_EQ(process.at("name"), "process payments");
  EXPECT_EQ(process.at("kind"), 5);
  EXPECT_EQ(process.at("parentSpanId"), receive.at("spanId"));
  EXPECT_EQ(process.at("traceId"), receive.at("traceId"));
  EXPECT_NE(process.at("traceId"), kProducerTrace);
  EXPECT_EQ(process.at("spanId"), hex(trace.context.span_id));
  for (const json& span : spans) {
    ASSERT_THAT(span.at("links"), SizeIs(1));
    const json& link = span.at("links")[0];
    EXPECT_EQ(link.at("traceId"), kProducerTrace);
    EXPECT_EQ(link.at("spanId"), kProducerSpan);
    EXPECT_EQ(link.at("traceState"), "a=1");
    EXPECT_EQ(attribute(span, "messaging.system"), "kafka");
    EXPECT_EQ(attribute(span, "messaging.destination.name"), "payments");
    EXPECT_EQ(attribute(span, "messaging.destination.partition.id"), "3");
    EXPECT_EQ(attribute(span, "messaging.kafka.offset"), "7");
    EXPECT_EQ(attribute(span, "messaging.consumer.group.name"), "group");
    EXPECT_EQ(attribute(span, "messaging.client.id"), "client-1");
    EXPECT_EQ(attribute(span, "messaging.batch.message_count"), nullptr);
    EXPECT_FALSE(span.contains("status"));
  }
  EXPECT_EQ(attribute(receive, "messaging.operation.type"), "receive");
  EXPECT_EQ(attribute(process, "messaging.operation.type"), "process");
  EXPECT_EQ(attribute(process, "hapax.outcome"), "completed");
  EXPECT_EQ(attribute(process, "hapax.handler"), "booker");
  const auto nanos = [](const json& span, const char* name) {
    return std::stoll(span.at(name).get<std::string>());
  };
  EXPECT_GE(nanos(receive, "endTimeUnixNano") - nanos(receive, "startTimeUnixNano"), 5'000'000);
  EXPECT_LE(nanos(receive, "endTimeUnixNano"), nanos(process, "startTimeUnixNano") + 1000);
  const auto age = std::chrono::system_clock::now().time_since_epoch() -
                   std::chrono::nanoseconds(nanos(process, "endTimeUnixNano"));
  EXPECT_TRUE(age >= -1s && age < 5min) << age.count();
  EXPECT_EQ(attribute(collector.resource(), "service.name"), "group");
  EXPECT_EQ(attribute(collector.resource(), "service.instance.id"), "w");
  EXPECT_NE(attribute(collector.resource(), "service.version"), nullptr);
}

TEST_F(Spans, AreChildrenOfTheProducerIfThatIsWanted) {
  trace(Parent::producer);
  const MessageWith message(7, {{"traceparent", kSampled}, {"tracestate", "a=1"}});
  EXPECT_TRUE(run(message).continues);
  for (const json& span : sent(2)) {
    EXPECT_EQ(span.at("traceId"), kProducerTrace);
    EXPECT_EQ(span.at("parentSpanId"), kProducerSpan);
    EXPECT_EQ(span.at("traceState"), "a=1");
    EXPECT_THAT(span.at("links"), SizeIs(1));
  }
}

TEST_F(Spans, OfABatchLinkToEachProducerAndAreChildrenOfNone) {
  trace(Parent::producer);
  std::deque<MessageWith> messages;
  std::vector<Received> received;
  std::vector<Ended> ends;
  for (std::int64_t i = 0; i < 150; ++i) {
    messages.emplace_back(
        i, i == 0 ? MessageWith::Headers{} : MessageWith::Headers{{"traceparent", kSampled}});
    received.push_back({*messages.back()});
    ends.push_back(i == 2 ? Ended{"failed", "rejected"} : Ended{"completed"});
  }
  EXPECT_FALSE(begin(received).continues);
  end(ends);
  const json span = sent(1)[0];  // a run again, without a time of arrival
  EXPECT_FALSE(span.contains("parentSpanId"));
  EXPECT_NE(span.at("traceId"), kProducerTrace);
  EXPECT_EQ(attribute(span, "messaging.batch.message_count"), "150");
  EXPECT_EQ(attribute(span, "messaging.kafka.offset"), nullptr);
  ASSERT_THAT(span.at("links"), SizeIs(kMaxLinks));
  EXPECT_EQ(span.at("droppedLinksCount"), 149 - kMaxLinks);
  EXPECT_EQ(attribute(span.at("links")[0], "messaging.kafka.offset"), "1");
  EXPECT_EQ(attribute(span.at("links")[0], "hapax.outcome"), "completed");
  EXPECT_EQ(attribute(span.at("links")[1], "hapax.outcome"), "failed");
  EXPECT_EQ(attribute(span, "error.type"), "rejected");
  EXPECT_EQ(span.at("status").at("code"), 2);
}

TEST_F(Spans, FollowTheDecisionOfTheProducer) {
  for (const double ratio : {0.0, 1.0}) {
    SCOPED_TRACE(ratio);
    trace(Parent::link, ratio);
    const MessageWith sampled(7, {{"traceparent", kSampled}}),
        not_sampled(7, {{"traceparent", kNotSampled}}), bare;
    EXPECT_TRUE(run(sampled).is_recorded);
    EXPECT_FALSE(run(not_sampled).is_recorded);
    EXPECT_EQ(run(bare).is_recorded, ratio == 1);
    EXPECT_TRUE(begin({{*not_sampled}, {*sampled}}).is_recorded) << "one of the batch is sampled";
    end({{"completed"}, {"completed"}});
    EXPECT_FALSE(begin({{*not_sampled}, {*not_sampled}}).is_recorded);
    end({{"completed"}, {"completed"}});
  }
  (void)sent(3 + 5);
}

TEST_F(Spans, AreTheShareThatIsWantedOfThoseWithoutProducer) {
  trace(Parent::link, 0.25);
  const MessageWith bare;
  int recorded = 0;
  for (int i = 0; i < 10'000; ++i) recorded += begin({{*bare}}).is_recorded ? 1 : 0;
  EXPECT_NEAR(recorded, 2'500, 400);
}

TEST_F(Spans, OfCommitsNameTheirTopicAndError) {
  trace(Parent::link);
  Commits commits(&*tracer);
  const std::string one = "payments", other = "orders";
  const std::vector<Commits::Committed> of_one = {{one, 3}}, of_both = {{one, 1}, {other, 1}};
  commits.answered(of_one, "", Time::clock::now());  // none was sent
  commits.sent(Time::clock::now() - 5ms);
  commits.answered(of_one, "", Time::clock::now());
  commits.sent(Time::clock::now());
  commits.answered(of_both, "deferred", Time::clock::now());
  const auto spans = sent(2);
  EXPECT_EQ(spans[0].at("name"), "commit payments");
  EXPECT_EQ(spans[0].at("kind"), 3);
  EXPECT_EQ(attribute(spans[0], "messaging.operation.type"), "settle");
  EXPECT_EQ(attribute(spans[0], "messaging.destination.partition.id"), "3");
  EXPECT_EQ(spans[1].at("name"), "commit");
  EXPECT_EQ(attribute(spans[1], "error.type"), "deferred");
}

TEST_F(Spans, AreJsonForAnyNameOfTopicAndHandler) {
  trace(Parent::link);
  const MessageWith bare;
  const std::vector<Received> messages = {{*bare}};
  runs->begin(messages, "a\"b\\c\n\xff\x01", Time::clock::now(), 17);
  end({{"later", "40\"001"}});
  const json span = sent(1)[0];
  EXPECT_EQ(attribute(span, "hapax.handler"), "a\"b\\c\n\uFFFD\x01");
  EXPECT_EQ(attribute(span, "error.type"), "40\"001");
  EXPECT_EQ(attribute(span, "hapax.replay"), "17");
}

TEST(NoTracer, BeginsNothing) {
  Runs runs(nullptr);
  const MessageWith bare;
  const std::vector<Received> messages = {{*bare}};
  EXPECT_EQ(runs.begin(messages, "booker", Time::clock::now()), nullptr);
  const std::vector<Ended> ends = {{"completed"}};
  runs.end(ends, Time::clock::now());
}

}  // namespace
}  // namespace hapax::traces
