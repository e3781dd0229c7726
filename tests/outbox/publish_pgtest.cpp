// What a handler publishes is in hapax.outbox if and only if its transaction committed. It has the
// order in which transactions were serialised, and keys that every rerun gives again.
#include <gmock/gmock.h>
#include <pqxx/pqxx>

#include <thread>

#include "flow/flow_case.hpp"
#include "flow/publisher.hpp"

namespace hapax::flow {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Publishing> receipts() {
  auto publishing = std::make_shared<Publishing>();
  publishing->topics = {{"receipts", 10'000}, {"audit", 1'000'000}};
  return publishing;
}

class Publish : public FlowCase {
 protected:
  Publish() { route.publishing = receipts(); }

  // "topic key payload", by id.
  std::string published() {
    return database.value(
        "SELECT coalesce(string_agg(concat_ws(' ', topic, convert_from(record_key, 'UTF8'), "
        "convert_from(payload, 'UTF8')), ', ' ORDER BY id), '') FROM hapax.outbox");
  }
  std::string keys() {
    return database.value("SELECT string_agg(idempotency_key, ' ' ORDER BY id) FROM hapax.outbox");
  }
};

void publish(const Message& message, Context& context) {
  context.publish("receipts", {.key = std::string(*message.header("id")),
                               .payload = std::string(*message.payload()),
                               .name = "receipt"});
}

// P1, on PostgreSQL's side.
TEST_F(Publish, IsThereIfAndOnlyIfTheTransactionCommitted) {
  const Body fails = [](const Message& message, Context& context) {
    book(message, context);
    publish(message, context);
    throw std::runtime_error("no");
  };
  EXPECT_EQ(process({.key = "k1"}, fails).result, Result::retry);
  EXPECT_EQ(published(), "");
  EXPECT_EQ(process({.key = "k1"}, publish).result, Result::completed);
  EXPECT_EQ(published(), "receipts k1 10");
  const Body rejects = [](const Message& message, Context& context) {
    publish(message, context);
    throw Reject("no");
  };
  EXPECT_EQ(process({.key = "k2", .offset = 1}, rejects).result, Result::failed);
  EXPECT_EQ(published(), "receipts k1 10");
}

TEST_F(Publish, IsNotRepeatedByARedeliveryOrAResend) {
  EXPECT_EQ(process({}, publish).result, Result::completed);
  EXPECT_EQ(process({}, publish).result, Result::duplicate);
  EXPECT_EQ(process({.offset = 7}, publish).result, Result::duplicate);
  EXPECT_EQ(published(), "receipts k1 10");
}

// P3. Held with the other deferred writes, the record of the one that waits would draw its id
// early.
TEST_F(Publish, DrawsIdsInTheOrderInWhichTransactionsAreSerialised) {
  for (const bool through_pqxx : {false, true}) {
    database.run("DELETE FROM hapax.outbox");
    const std::string n = through_pqxx ? "pqxx" : "sql";
    std::thread behind;
    const Body waits = [&](const Message& message, Context& context) {
      publish(message, context);
      if (through_pqxx) (void)context.pqxx();
      context.sql("SELECT pg_advisory_xact_lock(77)");
    };
    const Body holds = [&](const Message& message, Context& context) {
      context.sql("SELECT pg_advisory_xact_lock(77)");
      behind = std::thread([&] {
        Processor other = make_processor(2);
        EXPECT_EQ(process_on(other, {.key = "second " + n, .offset = 1}, waits).result,
                  Result::completed);
      });
      database.wait_until(
          "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", "1");
      publish(message, context);
    };
    EXPECT_EQ(process({.key = "first " + n}, holds).result, Result::completed);
    behind.join();
    EXPECT_EQ(published(), "receipts first " + n + " 10, receipts second " + n + " 10");
  }
}

TEST_F(Publish, KeepsTheOrderWithinAMessageAcrossTopics) {
  const Body several = [](const Message&, Context& context) {
    for (const char* n : {"1", "2", "3", "4"})
      context.publish(*n % 2 == 0 ? "audit" : "receipts", {.payload = n});
  };
  process({}, several);
  EXPECT_EQ(published(), "receipts 1, audit 2, receipts 3, audit 4");
}

// P5.
TEST_F(Publish, GivesTheSameKeysWhenTheTailOfPostgresWasLost) {
  const Body several = [](const Message& message, Context& context) {
    publish(message, context);
    context.publish("audit", {.payload = "a"});
    context.publish("audit", {.payload = "b"});
  };
  process({}, several);
  const std::string before = keys();
  database.run("DELETE FROM hapax.outbox; DELETE FROM hapax.idempotency_keys");
  process({}, several);
  EXPECT_EQ(keys(), before);
  EXPECT_EQ(database.value("SELECT count(DISTINCT idempotency_key) FROM hapax.outbox"), "3");
}

TEST(PublishedKey, DependsOnEachFieldAndOnItsEnd) {
  const key::Identity one{"k", "t", {}};
  const std::string key = published_key("s", one, "n", 0);
  EXPECT_EQ(key.size(), 64U);
  EXPECT_EQ(key, published_key("s", one, "n", 5)) << "a name, and the ordinal counts";
  EXPECT_NE(key, published_key("s2", one, "n", 0));
  EXPECT_NE(key, published_key("s", {"k2", "t", {}}, "n", 0));
  EXPECT_NE(key, published_key("s", {"k", "t2", {}}, "n", 0));
  EXPECT_NE(key, published_key("s", one, "n2", 0));
  EXPECT_NE(published_key("s", one, "", 0), published_key("s", one, "", 1));
  EXPECT_NE(published_key("s", one, "", 0), published_key("s", one, "0", 0));
  EXPECT_NE(published_key("ab", {"k", "c", {}}, "n", 0),
            published_key("a", {"k", "bc", {}}, "n", 0));
  // For ever: consumers know records by it.
  EXPECT_EQ(published_key("booking", {"p1", "", {}}, "receipt", 0),
            "70129521b3cb51560b3b1dbf07a3fde998e737dafddce5338de00bab553a5ad9");
}

TEST_F(Publish, HandsOnTheTraceAndKeepsTheHandlersHeaders) {
  const Body body = [](const Message&, Context& context) {
    context.publish("receipts", {.headers = {{"kind", "receipt"},
                                             {"kind", std::nullopt},
                                             {"bytes", std::string("\xff\x00", 2)},
                                             {"tracestate", "own"}}});
  };
  process({.headers = {{"traceparent", "00-1"},
                       {"tracestate", "theirs"},
                       {"other", "x"},
                       {"correlation-id", std::nullopt}}},
          body);
  EXPECT_EQ(database.value("SELECT headers FROM hapax.outbox"),
            R"([["kind","receipt"],["kind",null],["bytes",{"hex":"ff00"}],["tracestate","own"],)"
            R"(["traceparent","00-1"],["correlation-id",null]])");
  EXPECT_EQ(database.value("SELECT record_key IS NULL AND payload IS NULL FROM hapax.outbox"), "t");
}

TEST_F(Publish, BelongsToTheSpanOfItsRunIfThatIsSent) {
  const traces::Trace trace{.context = {.trace_id = {1}, .span_id = {2}, .flags = 1},
                            .is_recorded = true};
  std::string seen;
  const Body body = [&](const Message&, Context& context) {
    seen = context.traceparent();
    context.publish("receipts", {});
    context.publish("receipts", {.headers = {{"traceparent", "own"}}});
  };
  process({.headers = {{"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
                       {"tracestate", "a=1"},
                       {"correlation-id", "c"}}},
          body, {.trace = &trace});
  EXPECT_EQ(seen, "00-01000000000000000000000000000000-0200000000000000-01");
  EXPECT_EQ(database.value("SELECT string_agg(headers::text, ' ' ORDER BY id) FROM hapax.outbox"),
            R"([["traceparent",")" + seen + R"("],["correlation-id","c"]] )" +
                R"([["traceparent","own"],["correlation-id","c"]])");
}

TEST_F(Publish, KnowsWhichMessageItComesFrom) {
  process({.offset = 42}, publish, {.group = "g", .generation = 2});
  EXPECT_EQ(database.value("SELECT concat_ws('/', group_id, source_topic, source_generation, "
                           "source_partition, source_offset) FROM hapax.outbox"),
            "g/payments/2/3/42");
}

TEST_F(Publish, IsRefusedInTheHandlerWithASentenceThatTellsHowToFixIt) {
  const auto refusal = [&](std::string_view topic, Outgoing record) {
    Outcome outcome = process({.key = "refused"}, [&](const Message&, Context& context) {
      context.publish(topic, record);
    });
    EXPECT_NE(outcome.result, Result::completed);
    database.run(
        "DELETE FROM hapax.dead_letters; DELETE FROM hapax.idempotency_keys; "
        "DELETE FROM hapax.attempts");
    return outcome.detail;
  };
  EXPECT_THAT(refusal("elsewhere", {}), HasSubstr("not in publish.topics"));
  EXPECT_THAT(refusal("elsewhere", {}), HasSubstr("audit, receipts"));
  EXPECT_THAT(refusal("receipts", {.payload = std::string(20'000, 'x')}),
              HasSubstr("receipts takes 10000 (max.message.bytes)"));
  EXPECT_THAT(refusal("receipts", {.headers = {{"idempotency-key", "mine"}}}),
              HasSubstr("hapax sets the header idempotency-key itself"));
  EXPECT_THAT(refusal("receipts", {.headers = {{"\xff", "x"}}}), HasSubstr("is not UTF-8"));
  route.publishing = nullptr;
  EXPECT_THAT(refusal("receipts", {}), HasSubstr("name the topic in publish.topics"));
  EXPECT_EQ(published(), "");
}

TEST_F(Publish, RefusesANameThatIsUsedTwice) {
  const Outcome outcome = process({}, [](const Message&, Context& context) {
    context.publish("audit", {.name = "a"});
    context.publish("receipts", {.name = "a"});
  });
  EXPECT_THAT(outcome.detail, HasSubstr("\"a\" is used twice"));
}

TEST_F(Publish, HasNotUsedANameIfItWasRefused) {
  const Outcome outcome = process({}, [](const Message&, Context& context) {
    try {
      context.publish("receipts", {.payload = std::string(20'000, 'x'), .name = "a"});
    } catch (const Reject&) {
      context.publish("receipts", {.payload = "without details", .name = "a"});
    }
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(published(), "receipts without details");
}

TEST_F(Publish, IsNotTheMatterOfARoleThatTheHandlerTakes) {
  database.run(
      "DO $$ BEGIN CREATE ROLE publisher; EXCEPTION WHEN duplicate_object THEN END $$;"
      "GRANT publisher TO hapax_worker");
  const Outcome outcome = process({}, [](const Message& message, Context& context) {
    context.sql("SET LOCAL ROLE publisher");
    publish(message, context);
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(published(), "receipts k1 10");
  database.run("REVOKE publisher FROM hapax_worker");
}

// A batch is one INSERT for all its messages.
TEST_F(Publish, KeepsTheOrderOfABatchAndLeavesItsDuplicatesOut) {
  route.batch = 100;
  std::vector<std::string> ids;
  for (int i = 0; i < 40; ++i) ids.push_back("k" + std::to_string(i % 30));
  std::vector<Header> headers;
  for (const std::string& id : ids) headers.push_back({"id", id});
  const std::vector<Message> messages = messages_of(headers);
  const Body body = [](const Message& message, Context& context) {
    context.publish("receipts", {.payload = std::string(*message.header("id"))});
  };
  CountingHandler handler(body, runs);
  const std::string group = "group";
  Processor processor = make_processor();
  const std::vector<Job> jobs = jobs_of(messages, group, handler);
  for (const Outcome& outcome : processor.process(jobs)) EXPECT_TRUE(is_settled(outcome.result));
  std::string wanted;
  for (int i = 0; i < 30; ++i) wanted += (i == 0 ? "k" : " k") + std::to_string(i);
  const auto payloads = [&] {
    return database.value(
        "SELECT string_agg(convert_from(payload, 'UTF8'), ' ' ORDER BY id) FROM hapax.outbox");
  };
  EXPECT_EQ(payloads(), wanted);
  EXPECT_EQ(database.value("SELECT count(DISTINCT idempotency_key) FROM hapax.outbox"), "30");
  (void)processor.process(jobs);
  EXPECT_EQ(payloads(), wanted);
}

TEST_F(Publish, SurvivesAHandlerThatDropsOurPreparedStatements) {
  const Outcome outcome = settle({}, [](const Message& message, Context& context) {
    publish(message, context);
    context.pqxx().exec("DEALLOCATE ALL");
  });
  EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  EXPECT_EQ(published(), "receipts k1 10");
}

class Duplicates final : public Handler {
 public:
  void handle(const Message&, Context&) override {}
  bool wants_duplicates() const override { return true; }
  void on_duplicate(const Message&, const StoredResult&, Context& context) override {
    context.publish("receipts", {});
  }
};

TEST_F(Publish, IsRefusedInOnDuplicate) {
  const std::vector<Header> headers = {{"id", "k1"}};
  const std::vector<Message> messages = messages_of(headers);
  const std::string group = "group";
  Duplicates handler;
  Processor processor = make_processor();
  const Task task{.route = route, .message = messages[0], .group = group};
  EXPECT_EQ(processor.process(task, handler).result, Result::completed);
  const Outcome again = processor.process(task, handler);
  EXPECT_THAT(again.detail, HasSubstr("not in on_duplicate"));
  EXPECT_EQ(published(), "");
}

// Who may read what others wrote sees a record the moment its message is completed.
TEST_F(Publish, NudgesTheRelayAfterTheCommit) {
  auto publishing = std::make_shared<Publishing>(*receipts());
  int seen = 0;
  publishing->committed = [&] { seen = database.count("SELECT count(*) FROM hapax.outbox"); };
  route.publishing = publishing;
  process({}, publish);
  EXPECT_EQ(seen, 1);
  process({.key = "k2", .offset = 1});
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace hapax::flow
