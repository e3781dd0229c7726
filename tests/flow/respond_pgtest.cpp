// Context::respond in a handler that reads from Kafka.
#include "flow/flow_case.hpp"
#include "flow/stored_response.hpp"

namespace hapax::flow {
namespace {

using Respond = FlowCase;

TEST_F(Respond, StoresTheAnswerAsTheKeysResult) {
  const auto outcome = process({}, [](const Message& message, Context& context) {
    book(message, context);
    context.result({{"is", "replaced"}});
    context.respond(201, {{"Location", "/17"}, {"Set-Cookie", "s=1"}}, "17");
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(database.value("SELECT result FROM hapax.idempotency_keys"),
            R"({"hapax:response":{"body":"17","headers":[["Location","/17"]],"status":201}})");
}

TEST_F(Respond, WhatCannotBeStoredIsAFailedRun) {
  Sent sent;
  for (const auto& respond : std::vector<std::function<void(Context&)>>{
           [](Context& context) { context.respond(500); },
           [](Context& context) {
             context.respond(200, {{"A", "x\r\nB: y"}});
           },
           [](Context& context) { context.respond(200, {}, std::string(100, 'x')); }}) {
    ++sent.offset;  // each is another message
    const auto outcome = process(sent, [&](const Message&, Context& context) { respond(context); });
    EXPECT_EQ(outcome.result, Result::retry);
  }
  EXPECT_EQ(count("hapax.idempotency_keys"), 0);
}

TEST_F(Respond, AResultCannotPassForAnAnswer) {
  const auto outcome = process({}, [](const Message&, Context& context) {
    context.result({{"hapax:response", {{"status", 200}}}, {"a", 1}});
  });
  EXPECT_EQ(outcome.result, Result::failed);
  EXPECT_EQ(outcome.reason, "rejected");
}

}  // namespace
}  // namespace hapax::flow
