// What befalls a batch as a whole, and no message of it is to pay for.
#include <gmock/gmock.h>

#include <pqxx/pqxx>
#include <random>

#include "flow/flow_case.hpp"
#include "support/cutting_proxy.hpp"

namespace hapax::flow {
namespace {

class BatchNeighbours : public FlowCase {
 protected:
  static std::vector<Header> headers(const std::vector<std::string>& keys) {
    std::vector<Header> headers;
    for (const std::string& key : keys) headers.push_back({"id", key});
    return headers;
  }

  // The outcomes of one take of `keys`.
  std::vector<Outcome> outcomes(const std::vector<std::string>& keys, const Body& body,
                                const std::vector<std::string>& payloads = {}) {
    const std::vector<Header> named = headers(keys);
    const std::vector<Message> messages = messages_of(named, payloads);
    const std::string group = "group";
    CountingHandler handler(body, runs);
    Processor processor = make_processor();
    return processor.process(jobs_of(messages, group, handler));
  }

  // The same, as "name reason", joined by ", ".
  std::string take(const std::vector<std::string>& keys, const Body& body,
                   const std::vector<std::string>& payloads = {}) {
    std::string text;
    for (const Outcome& outcome : outcomes(keys, body, payloads))
      text += (text.empty() ? "" : ", ") + std::string(name_of(outcome.result)) +
              (outcome.reason.empty() ? "" : " " + outcome.reason);
    return text;
  }

  static void write(const Message& message, Context& context) {
    context.write("INSERT INTO effects (key, note) VALUES ($1, $2)", *message.header("id"),
                  *message.payload());
  }
};

// Their effect would stand without its key.
TEST_F(BatchNeighbours, WriteNothingBehindAHandlerThatHasEndedTheTransaction) {
  EXPECT_EQ(take({"a", "b"},
                 [](const Message& message, Context& context) {
                   if (*message.header("id") == "a") {
                     context.sql("ROLLBACK");
                     context.sql("SET default_transaction_read_only TO off");
                   } else {
                     context.sql("INSERT INTO effects (key, note) VALUES ('b', 'stray')");
                   }
                 }),
            "halt_route handler_ended_transaction, waits");
  EXPECT_EQ(count("effects"), 0);
}

// For example, all together slept past a timeout. Half of them will not.
TEST_F(BatchNeighbours, GoOnInHalvesIfTheConnectionWasLostAtTheSeal) {
  bool killed = false;
  const std::string workers =
      " FROM pg_stat_activity WHERE usename = 'hapax_worker' AND datname = current_database()";
  EXPECT_EQ(take({"a", "b", "c", "d"},
                 [&](const Message& message, Context& context) {
                   write(message, context);
                   if (*message.header("id") != "d" || std::exchange(killed, true)) return;
                   database.run("SELECT pg_terminate_backend(pid)" + workers);
                   database.wait_until("SELECT count(*)" + workers, "0");
                 }),
            "completed, completed, completed, completed");
  EXPECT_EQ(effects(), "a=book b=book c=book d=book");
  EXPECT_EQ(count("hapax.attempts"), 0);
}

TEST_F(BatchNeighbours, AreNotTakenForTheOneWhoseHandlerLostTheServer) {
  const std::vector<Outcome> ended =
      outcomes({"a", "b", "c"}, [&](const Message& message, Context& context) {
        if (*message.header("id") != "b") return write(message, context);
        test::postgres().kill();
        context.sql("SELECT 1");
      });
  test::postgres().start();
  EXPECT_EQ(ended[0].result, Result::outage) << ended[0].detail;
  EXPECT_FALSE(ended[0].lost_in_handler);
  EXPECT_TRUE(ended[1].lost_in_handler) << "it would not run alone the next time";
  EXPECT_FALSE(ended[2].lost_in_handler);
}

// The seal finds that the transaction is gone, when all handlers have come back.
TEST_F(BatchNeighbours, AreNotNamedInAHaltThatAnyOfThemMayHaveCaused) {
  const std::vector<Outcome> ended =
      outcomes({"a", "b", "c"}, [](const Message& message, Context& context) {
        if (*message.header("id") == "b") context.pqxx().exec("ROLLBACK");
      });
  EXPECT_EQ(ended[0].reason, "handler_ended_transaction");
  EXPECT_NE(ended[0].detail.find("begins with partition 0 offset 0: "), std::string::npos)
      << ended[0].detail;
}

// Another batch, most likely, that holds it to its end; one by one would hold it for a moment.
TEST_F(BatchNeighbours, TakeTurnsBeforeAnybodyIsCountedForARowThatIsLocked) {
  database.run(
      "CREATE TABLE accounts (id int); INSERT INTO accounts VALUES (1);"
      "GRANT SELECT, UPDATE ON accounts TO hapax_worker");
  options.lock_timeout = std::chrono::milliseconds(50);
  pqxx::connection holder(database.owner().url);
  auto holds = std::make_unique<pqxx::work>(holder);
  holds->exec("SELECT FROM accounts FOR UPDATE");
  int tries = 0;
  EXPECT_EQ(take({"a", "b", "c"},
                 [&](const Message& message, Context& context) {
                   if (*message.header("id") == "b") {
                     if (++tries == 3) holds.reset();
                     context.sql("UPDATE accounts SET id = id");
                   }
                   write(message, context);
                 }),
            "completed, completed, completed");
  EXPECT_EQ(tries, 3) << "together, in turns, alone";
  EXPECT_EQ(count("hapax.attempts"), 0);
}

TEST_F(BatchNeighbours, AreSetApartTogetherIfSeveralStandInTheWay) {
  for (const char* const key : {"a", "c", "e"})
    process({.key = key, .payload = "other", .offset = 100}, book);
  database.run("TRUNCATE effects");
  EXPECT_EQ(take({"a", "b", "c", "d", "e"}, write),
            "failed payload_drift, completed, failed payload_drift, completed, failed "
            "payload_drift");
  EXPECT_EQ(effects(), "b=book d=book");
}

// A watcher may keep the address while the batch runs.
TEST_F(BatchNeighbours, AreWatchedByTheTasksThatTheLaneKeeps) {
  const std::vector<std::string> keys = {"a", "b", "c", "d"};
  const std::vector<Header> named = headers(keys);
  const std::vector<Message> messages = messages_of(named);
  const std::string group = "group";
  const Body body = [](const Message& message, Context& context) {
    if (*message.header("id") == "c") throw Reject("no");
    write(message, context);
  };
  CountingHandler handler(body, runs);
  std::vector<Job> jobs = jobs_of(messages, group, handler);
  jobs[0].task.remembered = true;
  std::vector<const Task*> watched;
  Processor processor([this] { return store::Session(options); }, 1,
                      [&](const Task* task, auto) {
                        if (task != nullptr) watched.push_back(task);
                      });
  processor.process(jobs);
  const auto task = [&](std::size_t n) { return &jobs[n].task; };
  EXPECT_THAT(watched, testing::ElementsAre(task(0), task(1), task(2), task(1), task(2), task(3)))
      << "a alone, b and c together, and then each alone";
}

// Under another key they could run again, so a worker that leaves must know of it.
TEST_F(BatchNeighbours, AreAllInDoubtIfTheAnswerToTheirCommitIsLost) {
  test::CuttingProxy proxy(test::postgres().port());
  const store::ConnectOptions through = test::through_port(options, proxy.port());
  const std::vector<std::string> keys = {"a", "b", "c"};
  const std::vector<Header> named = headers(keys);
  const std::vector<Message> messages = messages_of(named);
  const std::string group = "group";
  const Body body = write;
  CountingHandler handler(body, runs);
  Processor processor([&] { return store::Session(through); }, 1);
  proxy.cut_next(";COMMIT", test::CuttingProxy::Cut::after_answer);
  for (const Outcome& outcome : processor.process(jobs_of(messages, group, handler)))
    EXPECT_TRUE(outcome.in_doubt) << name_of(outcome.result);
  EXPECT_EQ(effects(), "a=book b=book c=book");
}

// Else a large batch would hold all of its results until it ends.
TEST_F(BatchNeighbours, SendTheirResultsWhileTheyRunIfTheyAreLarge) {
  constexpr int kMessages = 24;
  constexpr std::size_t kSize = 60'000;
  route.max_result_bytes = 2 * kSize;
  std::vector<std::string> keys;
  for (int n = 0; n < kMessages; ++n) keys.push_back(std::string(1, static_cast<char>('a' + n)));
  std::mt19937 random(1);  // what PostgreSQL cannot compress
  int sent = 0;            // MB
  EXPECT_THAT(take(keys,
                   [&](const Message& message, Context& context) {
                     std::string result(*message.header("id"));
                     while (result.size() < kSize) result += static_cast<char>('!' + random() % 90);
                     context.result(result);
                     if (*message.header("id") == keys.back())
                       sent = database.count(
                           "SELECT pg_total_relation_size('hapax.idempotency_keys') / 1000000");
                   }),
              testing::Not(testing::HasSubstr("failed")));
  EXPECT_GT(sent, 0);
  EXPECT_EQ(database.value("SELECT count(*), bool_and(left(result #>> '{}', 1) = key), "
                           "min(length(result #>> '{}')) FROM hapax.idempotency_keys"),
            "24|t|60000");
}

// The message itself is a duplicate, even if the rule has changed. Another message of its key is
// not.
TEST_F(BatchNeighbours, OfAKeyThatWasStoredUnderAnotherRuleAreComparedOneByOne) {
  const std::string stored = R"({"a":1})", other = R"({"a": 1})";
  EXPECT_EQ(take({"k"}, write, {stored}), "completed");
  route.key.fingerprint.kind = key::FingerprintRule::Kind::json;
  EXPECT_EQ(take({"k", "k"}, write, {stored, other}), "duplicate, failed payload_drift");
  EXPECT_EQ(effects(), "k=" + stored);
}

}  // namespace
}  // namespace hapax::flow
