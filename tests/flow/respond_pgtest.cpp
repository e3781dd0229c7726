// Context::respond in a handler that reads from Kafka.
#include <gmock/gmock.h>

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

class AnswersAgain final : public Handler {
 public:
  explicit AnswersAgain(std::function<void(Context&)> again) : again_(std::move(again)) {}
  void handle(const Message&, Context& context) override { context.result({{"is", "first"}}); }
  bool wants_duplicates() const override { return true; }
  void on_duplicate(const Message&, const StoredResult&, Context& context) override {
    again_(context);
  }

 private:
  std::function<void(Context&)> again_;
};

// The key would keep its result, and nothing would tell.
TEST_F(Respond, IsRefusedInOnDuplicateAndSoIsAResult) {
  for (const auto& again :
       std::vector<std::function<void(Context&)>>{[](Context& context) { context.respond(200); },
                                                  [](Context& context) { context.result(2); }}) {
    database.run("TRUNCATE hapax.idempotency_keys");
    AnswersAgain handler(again);
    Processor processor = make_processor();
    const std::vector<Header> headers = {{"id", "k1"}};
    const std::vector<Message> messages = messages_of(headers);
    const std::string group = "group";
    const Task task{.route = route, .message = messages[0], .group = group};
    EXPECT_EQ(processor.process(task, handler).result, Result::completed);
    EXPECT_THAT(processor.process(task, handler).detail, testing::HasSubstr("not in on_duplicate"));
    EXPECT_EQ(database.value("SELECT result FROM hapax.idempotency_keys"), R"({"is":"first"})");
  }
}

}  // namespace
}  // namespace hapax::flow
