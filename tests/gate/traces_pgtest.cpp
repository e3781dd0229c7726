// Spans of requests (docs/operating.md): whose child they are, what they tell, and what they do
// not.
#include <gmock/gmock.h>

#include "gate/accept_case.hpp"
#include "support/collector.hpp"

namespace hapax::gate {
namespace {

using nlohmann::json;
using support::attribute;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr const char* kSpan = "00f067aa0ba902b7";

std::string client(const char* flags) {
  return std::string("00-") + kTrace + "-" + kSpan + "-" + flags;
}
std::string traceparent_of(const json& span) {
  return "00-" + span.at("traceId").get<std::string>() + "-" +
         span.at("spanId").get<std::string>() + "-01";
}
bool is_any(const json&) { return true; }

class GateTraces : public AcceptCase {
 protected:
  GateTraces() {
    config.base.traces.endpoint = collector.target();
    add_route({"/accounts/{account}/payments"});
    std::swap(config.gate.routes.back(), config.gate.routes[1]);
    std::swap(config.base.routes.back(), config.base.routes[1]);
    body = [this](const Message& message, Context& context) {
      const std::lock_guard lock(mutex_);
      handed_on_ = context.traceparent();
      book(message, context);
    };
  }

  Reply pay(const std::string& key, Headers headers = {}) {
    return post(key, "10", std::move(headers), "/accounts/secret-account/payments");
  }
  json one_span(const std::string& outcome) {
    return collector.await(
        1, [&](const json& span) { return attribute(span, "hapax.outcome") == outcome; })[0];
  }

  // By the handler that ran last.
  std::string handed_on() {
    const std::lock_guard lock(mutex_);
    return handed_on_;
  }

  support::Collector collector;

 private:
  std::mutex mutex_;
  std::string handed_on_;
};

TEST_F(GateTraces, ARequestIsAChildOfItsClientsSpan) {
  EXPECT_EQ(pay("k1", {{"traceparent", client("01")}, {"tracestate", "a=1"}}).status, 201);
  const json span = one_span("executed");
  EXPECT_EQ(span.at("traceId"), kTrace);
  EXPECT_EQ(span.at("parentSpanId"), kSpan);
  EXPECT_EQ(span.at("traceState"), "a=1");
  EXPECT_EQ(span.at("name"), "POST /accounts/{account}/payments");
  EXPECT_EQ(span.at("kind"), 2);
  EXPECT_FALSE(span.contains("status"));
  EXPECT_EQ(attribute(span, "http.request.method"), "POST");
  EXPECT_EQ(attribute(span, "http.route"), "/accounts/{account}/payments");
  EXPECT_EQ(attribute(span, "http.response.status_code"), "201");
  EXPECT_EQ(attribute(span, "url.scheme"), "http");
  EXPECT_EQ(attribute(span, "messaging.system"), nullptr);
  EXPECT_EQ(handed_on(), traceparent_of(span)) << "to what the handler calls";
  EXPECT_EQ(attribute(collector.resource(), "service.name"), "gate");
  EXPECT_THAT(span.dump(), Not(HasSubstr("secret-account")));
}

TEST_F(GateTraces, EachAnswerHasItsOwnSpan) {
  pay("k1");
  pay("k1");
  const json replayed = one_span("replayed");
  EXPECT_NE(replayed.at("traceId"), one_span("executed").at("traceId"));
  EXPECT_FALSE(replayed.contains("parentSpanId"));
  ask(request("BREW", "/none", as_ann()));
  const json refused = one_span("refused");
  EXPECT_EQ(refused.at("name"), "HTTP");
  EXPECT_EQ(attribute(refused, "http.request.method"), "_OTHER");
  EXPECT_FALSE(refused.contains("status")) << "the client is to blame";
  body = [](const Message&, Context&) { throw std::runtime_error("x"); };
  pay("k2");
  const json failed = one_span("failed");
  EXPECT_EQ(attribute(failed, "error.type"), "500");
  EXPECT_EQ(failed.at("status").at("code"), 2);
}

TEST_F(GateTraces, TheClientDecidesWhetherThereIsASpan) {
  config.base.traces.ratio = 0;
  pay("k1");
  EXPECT_THAT(handed_on(), testing::EndsWith("-00")) << "or the next one would decide again";
  pay("k2", {{"traceparent", client("00")}});
  EXPECT_EQ(handed_on(), client("00")) << "no span of hapax is between the two";
  pay("k3", {{"traceparent", client("01")}});
  EXPECT_EQ(one_span("executed").at("parentSpanId"), kSpan);
  EXPECT_EQ(collector.await(1, is_any).size(), 1U);
}

TEST_F(GateTraces, WhoMayNotCallDoesNotDecideWhetherThereIsASpan) {
  config.base.traces.ratio = 0;
  const Headers sampled = {{"traceparent", client("01")}};
  EXPECT_EQ(ask(request("POST", "/accounts/a/payments", sampled)).status, 401);
  EXPECT_EQ(pay("k1", sampled).status, 201);
  one_span("executed");
  EXPECT_EQ(collector.await(1, is_any).size(), 1U);
}

TEST_F(GateTraces, AnAcceptedRequestHandsItsSpanToTheWorker) {
  EXPECT_EQ(post("k1", "10", {{"traceparent", client("01")}}).status, 202);
  const json span = one_span("executed");
  EXPECT_EQ(span.at("parentSpanId"), kSpan);
  EXPECT_THAT(database.value("SELECT headers FROM hapax.outbox"),
              HasSubstr("[\"traceparent\",\"" + traceparent_of(span) + "\"]"));
}

}  // namespace
}  // namespace hapax::gate
