// Spans of whole workers: what a collector gets of a message's way, and what a missing one costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/collector.hpp"
#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kTraceOfProducer = "4bf92f3577b34da6a3ce929d0e0e4736";

Outgoing traced(Outgoing record) {
  record.headers.emplace_back("traceparent",
                              std::string("00-") + kTraceOfProducer + "-00f067aa0ba902b7-01");
  return record;
}

std::function<bool(const json&)> of(const std::string& name, const char* attribute_name,
                                    const json& value) {
  return [=](const json& span) {
    return span.at("name") == name && attribute(span, attribute_name) == value;
  };
}

TEST(Traces, TellARetryADeadLetterAndItsReplay) {
  Site site = Site::on_mock_cluster(1);
  Collector collector;
  const auto worker =
      site.worker("w", {{"traces", {{"endpoint", collector.endpoint()}, {"parent", "producer"}}}});
  Producer producer(site.bootstrap());
  producer.send(traced(site.payment(1, {{"do", "fail"}})));
  producer.send(site.payment(2));
  const std::string process = "process " + site.topic();

  const json retry = collector.await(1, of(process, "hapax.outcome", "retry"))[0];
  EXPECT_EQ(retry.at("traceId"), kTraceOfProducer);
  EXPECT_EQ(retry.at("parentSpanId"), "00f067aa0ba902b7");
  EXPECT_EQ(attribute(retry, "error.type"), "failed");
  const json given_up = collector.await(1, of(process, "hapax.outcome", "failed"))[0];
  EXPECT_EQ(given_up.at("traceId"), kTraceOfProducer);
  EXPECT_EQ(attribute(given_up, "error.type"), "attempts_exhausted");
  EXPECT_EQ(attribute(given_up, "messaging.kafka.offset"), "0");
  const json completed = collector.await(1, of(process, "hapax.outcome", "completed"))[0];
  EXPECT_EQ(attribute(completed, "messaging.kafka.offset"), "1");
  EXPECT_NE(completed.at("traceId"), kTraceOfProducer);
  EXPECT_THAT(collector.await(2, "poll " + site.topic()), SizeIs(2)) << "none for the second run";
  collector.await(1, "commit " + site.topic());

  const json trace = {{"trace_id", kTraceOfProducer}};
  worker->await("attempt_failed", trace);
  worker->await("dead_letter", trace);
  EXPECT_THAT(hapax({"dead", "show", "1"}, worker->config()).text,
              HasSubstr(std::string("trace        ") + kTraceOfProducer));
  EXPECT_EQ(hapax({"dead", "replay", "1", "--why", "test", "--who", "ann", "--yes", "--url",
                   site.database().owner().url},
                  worker->config())
                .code,
            1)
      << "it fails again";
  const json replayed = collector.await(1, of(process, "hapax.replay", "1"))[0];
  EXPECT_EQ(replayed.at("traceId"), kTraceOfProducer);
  EXPECT_EQ(replayed.at("status").at("code"), 2);
  worker->await("replay", trace);
  expect_leaves(*worker);
  EXPECT_EQ(attribute(collector.resource(), "service.name"), site.group());
}

TEST(Traces, OfABatchAreOneSpanWithALinkForEachMessage) {
  Site site = Site::on_mock_cluster(1);
  Collector collector;
  Producer producer(site.bootstrap());
  for (int i = 0; i < 40; ++i) producer.produce(traced(site.payment(i)));
  producer.flush();
  const auto worker = site.worker("w", {{"traces", {{"endpoint", collector.endpoint()}}},
                                        {"worker", {{"lanes", 1}}},
                                        {"route", {{"batch", 100}}}});
  site.await_booked(40);
  expect_leaves(*worker);  // which sends what waits
  std::size_t links = 0, batches = 0;
  for (const json& span : collector.await(1, "process " + site.topic())) {
    links += span.at("links").size();
    const json count = attribute(span, "messaging.batch.message_count");
    if (!count.is_null()) ++batches;
    EXPECT_EQ(json(std::to_string(span.at("links").size())), count.is_null() ? json("1") : count);
  }
  EXPECT_EQ(links, 40U);
  EXPECT_GE(batches, 1U);
  site.expect_exact(40);
}

TEST(Traces, CostNoMessageIfNoCollectorTakesThem) {
  Site site = Site::on_mock_cluster(1);
  Collector collector;
  collector.hold();
  const auto worker = site.worker("w", {{"traces", {{"endpoint", collector.endpoint()}}}});
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 500);
  site.await_booked(500);
  worker->await("traces_fail");
  site.pay(producer, 500, 500);
  site.await_booked(1000);
  EXPECT_EQ(worker->count("traces_fail"), 1U);
  expect_leaves(*worker);
  site.expect_exact(1000);
}

TEST(Traces, AreCheckedBeforeAWorkerStarts) {
  Site site = Site::on_mock_cluster(1);
  Collector collector;
  const sandbox::TemporaryFolder folder("check");
  const std::filesystem::path file = folder.path() / "worker.json";
  std::ofstream(file)
      << site.options("w", {{"traces", {{"endpoint", collector.endpoint()}}}}).config;
  EXPECT_THAT(hapax({"check"}, file).text,
              HasSubstr("ok    traces: " + collector.endpoint() + " takes spans"));
  collector.answer(404);
  EXPECT_THAT(hapax({"check"}, file).text, HasSubstr("warn  traces: " + collector.endpoint() +
                                                     " answers with HTTP status 404 →"));
}

}  // namespace
}  // namespace hapax::support
