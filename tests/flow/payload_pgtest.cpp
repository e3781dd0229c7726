// Payloads that the route checks or decodes, on their way through the claim.
#include <fstream>

#include "flow/flow_case.hpp"
#include "flow/replay_case.hpp"
#include "payload/reader.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::flow {
namespace {

using payload::Reading;

class PayloadRules : public FlowCase {
 protected:
  PayloadRules() {
    config::Payload rules;
    rules.schema = folder_.path() / "amount.schema.json";
    std::ofstream(rules.schema) << R"({"type": "integer", "minimum": 1})";
    route.payload = payload::make_reader(rules);
  }

  std::string letters() {
    return database.value(
        "SELECT coalesce(string_agg(concat_ws('|', kafka_offset, reason, key, error), ' ' "
        "ORDER BY kafka_offset), '') FROM hapax.dead_letters");
  }

 private:
  sandbox::TemporaryFolder folder_{"payload"};
};

TEST_F(PayloadRules, AViolationIsADeadLetterWithItsKeyAndPlaceAndIsNotRun) {
  EXPECT_EQ(process({.key = "good", .payload = "7", .offset = 1}).result, Result::completed);
  EXPECT_EQ(process({.key = "bad", .payload = "0", .offset = 2}).reason, "schema_violation");
  EXPECT_EQ(process({.key = "no", .payload = "{", .offset = 3}).reason, "not_json");
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(effects(), "good=7");
  EXPECT_EQ(key_row("bad"), "failed@2");
  EXPECT_EQ(letters().substr(0, 60),
            std::string("2|schema_violation|bad|the payload violates the schema, at \"\": ")
                .substr(0, 60));
  EXPECT_EQ(process({.key = "bad", .payload = "8", .offset = 4}).result, Result::completed);
}

// A schema that became stricter does not judge what took effect before.
TEST_F(PayloadRules, AMessageThatWasCompletedStaysADuplicate) {
  const auto strict = std::exchange(route.payload, nullptr);
  EXPECT_EQ(process({.payload = "0", .offset = 1}).result, Result::completed);
  route.payload = strict;
  EXPECT_EQ(process({.payload = "0", .offset = 1}).result, Result::duplicate);
  EXPECT_EQ(process({.payload = "0", .offset = 2}).result, Result::duplicate);
  EXPECT_EQ(letters(), "");
}

TEST_F(PayloadRules, AViolationDoesNotOpenTheBreaker) {
  Outcome outcome;
  for (int i = 0; i < 3; ++i) {
    outcome = process({.key = std::to_string(i), .payload = "0", .offset = i});
    EXPECT_EQ(cause_of(outcome), "");
  }
}

TEST_F(PayloadRules, ATombstoneIsNotChecked) {
  route.key.tombstone = key::Tombstone::handle;
  const auto nothing = [](const Message&, Context&) {};
  EXPECT_EQ(process({.payload = std::nullopt}, nothing).result, Result::completed);
}

TEST_F(PayloadRules, InABatchOnlyTheViolationFails) {
  const std::vector<Header> headers = {{"id", "a"}, {"id", "b"}, {"id", "c"}};
  const std::vector<std::string> payloads = {"1", "0", "3"};
  const std::vector<Message> messages = messages_of(headers, payloads);
  const Body body = book;
  CountingHandler handler(body, runs);
  const std::string group = "group";
  const auto outcomes = make_processor().process(jobs_of(messages, group, handler));
  EXPECT_EQ(outcomes[0].result, Result::completed);
  EXPECT_EQ(outcomes[1].reason, "schema_violation");
  EXPECT_EQ(outcomes[2].result, Result::completed);
  EXPECT_EQ(effects(), "a=1 c=3");
}

// The key of the next message is taken with the COMMIT before it, only if it may run.
TEST_F(PayloadRules, AViolationIsNotClaimedAhead) {
  const std::vector<Header> headers = {{"id", "a"}, {"id", "b"}};
  const std::vector<std::string> payloads = {"1", "0"};
  const std::vector<Message> messages = messages_of(headers, payloads);
  const Body body = book;
  CountingHandler handler(body, runs);
  const std::string group = "group";
  const std::vector<Job> jobs = jobs_of(messages, group, handler);
  Processor processor = make_processor();
  EXPECT_EQ(processor.process(jobs[0].task, handler, [&] { return &jobs[1].task; }).result,
            Result::completed);
  EXPECT_EQ(processor.process(jobs[1].task, handler).reason, "schema_violation");
  EXPECT_EQ(effects(), "a=1");
  EXPECT_EQ(letters().substr(0, 20), "1|schema_violation|b");
}

TEST_F(PayloadRules, WhatCannotBeDecodedIsADeadLetterWithItsBytes) {
  const Reading unknown{.state = Reading::State::unreadable,
                        .reason = "unknown_schema",
                        .detail = "the registry does not know /schemas/ids/7"};
  EXPECT_EQ(process({.payload = "x", .offset = 1}, book, {.reading = &unknown}).reason,
            "unknown_schema");
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(letters(), "1|unknown_schema|the registry does not know /schemas/ids/7");
  EXPECT_EQ(database.value("SELECT payload FROM hapax.dead_letters"), "\\x78");
}

TEST_F(PayloadRules, ARegistryThatIsAwayCountsNoAttempt) {
  const Reading away{.state = Reading::State::away,
                     .reason = "registry",
                     .detail = "refused",
                     .wait = std::chrono::milliseconds(200)};
  for (int i = 0; i < 10; ++i) {
    const Outcome outcome = process({.payload = "x"}, book, {.reading = &away});
    EXPECT_EQ(outcome.result, Result::busy);
    EXPECT_EQ(outcome.wait, away.wait);
  }
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(count("hapax.attempts"), 0);
  EXPECT_EQ(count("hapax.dead_letters"), 0);
  EXPECT_EQ(key_row(), "");
}

TEST_F(PayloadRules, TheSchemaIsOfTheDecodedPayload) {
  const Reading good{.json = "5"};
  const Reading bad{.json = "0"};
  EXPECT_EQ(process({.key = "a", .payload = "?", .offset = 1}, book, {.reading = &good}).result,
            Result::completed);
  EXPECT_EQ(process({.key = "b", .payload = "?", .offset = 2}, book, {.reading = &bad}).reason,
            "schema_violation");
  EXPECT_EQ(effects(), "a=?");  // the payload stays the bytes
}

// A registry may take seconds. Meanwhile no lock of the letter is held, and no row keeps vacuum.
class ReplayedPayload : public ReplayCase {
 protected:
  // Of a worker that has asked nothing yet.
  Replayed run_with_registry(bool is_away) {
    config::Payload rules;
    rules.format = config::Payload::Format::avro;
    route.payload = std::make_shared<const payload::Reader>(rules, [=, this](const std::string&) {
      lasts =
          database.value("SELECT claimed_until > now() + interval '1 minute' FROM hapax.replays");
      open = database.value(
          "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
          "state <> 'idle' AND pid <> pg_backend_pid() AND backend_type = 'client backend'");
      if (is_away) throw std::runtime_error("refused");
      return payload::HttpAnswer{200, R"({"schema": "\"long\""})"};
    });
    return run_next([&](const Message& message, Context&) { read = message.json().dump(); });
  }

  std::string open;   // transactions, while the registry was asked
  std::string lasts;  // then, whether the claim lasts as long as other lanes may ask before
  std::string read;
};

TEST_F(ReplayedPayload, HoldsNoTransactionWhileTheRegistryIsAsked) {
  const Reading unknown{
      .state = Reading::State::unreadable, .reason = "unknown_schema", .detail = "no"};
  EXPECT_EQ(
      process({.payload = std::string("\0\0\0\0\7\x0e", 6)}, book, {.reading = &unknown}).result,
      Result::failed);
  want(1);
  const Replayed later = run_with_registry(true);
  EXPECT_EQ(later.result, ReplayResult::later);
  EXPECT_EQ(later.detail, "the schema registry is away: refused");
  EXPECT_TRUE(later.awaits_schema);
  EXPECT_EQ(open, "0");
  EXPECT_EQ(lasts, "t");
  EXPECT_EQ(runs, 0);
  database.run("UPDATE hapax.replays SET next_try = now()");
  EXPECT_EQ(run_with_registry(false).result, ReplayResult::completed);
  EXPECT_EQ(open, "0");
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(read, "7");
}

// Announcing opens the session, so that it is new for the run behind it, too. It once ran on new
// sessions for ever.
TEST_F(PayloadRules, ACautiousMessageThatIsDecodedLateFailsAsAnyOther) {
  route.payload = nullptr;
  const Reading five{.json = "5"};
  const Given late{.cautious = true, .reading = &five, .reads_late = true};
  const Body divides = [](const Message&, Context& context) { context.sql("SELECT 1 / 0"); };
  EXPECT_EQ(settle(Sent{.key = "k1", .offset = 1}, divides, late).reason, "attempts_exhausted");
  const Body reads = [](const Message&, Context& context) { context.sql("SELECT FROM gone"); };
  EXPECT_EQ(settle(Sent{.key = "k2", .offset = 2}, reads, late).reason, "statement_refused");
}

}  // namespace
}  // namespace hapax::flow
