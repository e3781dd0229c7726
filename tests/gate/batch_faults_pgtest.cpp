// Requests that share a transaction, and what can happen around them: keys of other processes,
// COMMITs without an answer, handlers that take long.
#include "gate/batch_case.hpp"
#include "sandbox/proxy.hpp"
#include "store/transaction.hpp"

namespace hapax::gate {
namespace {

using namespace std::chrono_literals;
using Then = sandbox::Proxy::Then;

class GateBatchFaults : public BatchCase<GateCase> {
 protected:
  // At the first COMMIT of a transaction that took several keys.
  void cut_at_commit(Then how) {
    proxy_ = std::make_unique<sandbox::Proxy>(
        sandbox::Proxy::Target{"127.0.0.1", std::to_string(test::postgres().port())},
        std::chrono::nanoseconds{},
        [this, how](int connection, sandbox::Proxy::From from, const std::string& text) {
          if (from != sandbox::Proxy::From::client) return Then::forward;
          if (text.find("lock_timeout TO 50") != std::string::npos) shared_on_ = connection;
          if (connection != shared_on_ || text.find(";COMMIT") == std::string::npos || cuts > 0)
            return Then::forward;
          ++cuts;
          return how;
        });
    options = test::through_port(options, proxy_->port());
  }

  std::atomic<int> cuts = 0;

 private:
  int shared_on_ = -1;
  std::unique_ptr<sandbox::Proxy> proxy_;
};

TEST_F(GateBatchFaults, AKeyThatAnotherProcessHasKeepsNoOtherWaiting) {
  store::ConnectOptions patient = database.owner();
  patient.idle_in_transaction_timeout = 600s;
  store::Session other(patient);
  store::Transaction holding(other);
  holding.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, tenant, status, fingerprint, "
      "fingerprint_rule, group_id, topic, generation, partition, kafka_offset, expires_at) VALUES "
      "('k2', 'gate', 'ann', 'completed', '', 'http-1', 'gate', '/payments', 0, 0, 7, now() + "
      "interval '1 day')");
  config.gate.lanes = 2;
  options.lock_timeout = options.statement_timeout = config.gate.batch_time = 600s;
  const auto clients = send_batch({{"k1"}, {"k2"}, {"k3"}, {"k4"}});
  for (const std::size_t free : {0U, 2U, 3U}) EXPECT_EQ(clients[free]->read().status, 201);
  holding.rollback();
  EXPECT_EQ(clients[1]->read().status, 201);
  EXPECT_EQ(database.value("SELECT string_agg(key, ' ' ORDER BY key) FROM effects"), "k1 k2 k3 k4");
}

// It does not run alone behind its batch.
TEST_F(GateBatchFaults, RetriesCostTheTwoRoundTripsOfTheirBatch) {
  const auto other = make_gate();  // another process, so that this one has not seen the keys
  for (const char* const key : {"k1", "k2"})
    ask(request("POST", "/payments", keyed(key), "10"), other->gate.port());
  std::atomic<int> texts = 0;
  sandbox::Proxy proxy(
      {"127.0.0.1", std::to_string(test::postgres().port())}, {},
      [&](int, sandbox::Proxy::From from, const std::string& text) {
        if (from == sandbox::Proxy::From::client && text.find("k2") != std::string::npos) ++texts;
        return Then::forward;
      });
  options = test::through_port(options, proxy.port());
  for (const Reply& reply : ask_batch({{"k1"}, {"k2"}}))
    EXPECT_EQ(reply.header("idempotent-replayed"), "true") << reply.body;
  EXPECT_EQ(texts, 2);
  EXPECT_EQ(post("k2").header("idempotent-replayed"), "true");
  EXPECT_EQ(texts, 3) << "it is looked up from now on";
}

TEST_F(GateBatchFaults, ACommitWithoutAnAnswerThatTookEffectIsNotDoneAgain) {
  cut_at_commit(Then::forward_and_cut);
  for (const Reply& reply : ask_batch({{"k1"}, {"k2"}, {"k3"}})) {
    EXPECT_EQ(reply.status, 201) << reply.body;
    EXPECT_EQ(reply.header("idempotent-replayed"), "");
  }
  EXPECT_EQ(cuts, 1);
  EXPECT_EQ(handled, 3);
  EXPECT_EQ(transactions(), "k1+k2+k3");
}

TEST_F(GateBatchFaults, ACommitThatNeverArrivedIsDoneAgain) {
  cut_at_commit(Then::cut);
  for (const Reply& reply : ask_batch({{"k1"}, {"k2"}, {"k3"}})) EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(cuts, 1);
  EXPECT_EQ(handled, 6);
  EXPECT_EQ(effects(), "k1=10 k2=10 k3=10");
}

// Whether a constraint waits for the COMMIT.
TEST_F(GateBatchFaults, AQuestionWithoutAnAnswerIsAskedAgainForTheNextBatch) {
  std::atomic<int> questions = 0;
  sandbox::Proxy proxy({"127.0.0.1", std::to_string(test::postgres().port())}, {},
                       [&](int, sandbox::Proxy::From from, const std::string& text) {
                         const bool asks = from == sandbox::Proxy::From::client &&
                                           text.find("tginitdeferred") != std::string::npos;
                         return asks && ++questions == 1 ? Then::cut : Then::forward;
                       });
  options = test::through_port(options, proxy.port());
  for (const Reply& reply : ask_batch({{"k1"}, {"k2"}})) EXPECT_EQ(reply.status, 201);
  for (const Reply& reply : ask_batch({{"k3"}, {"k4"}})) EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(transactions(), "k1 k2 k3+k4");
  EXPECT_EQ(questions, 2);
}

TEST_F(GateBatchFaults, NoRequestWaitsForTheSlowHandlerOfAnother) {
  config.gate.lanes = 2;
  config.gate.batch_time = 250ms;
  auto door = std::make_shared<Door>();
  body = [door](const Message& message, Context& context) {
    book(message, context);
    if (*message.header("idempotency-key") == "k2") door->pass();
  };
  const auto clients = send_batch({{"k1"}, {"k2"}, {"k3"}, {"k4"}, {"k5"}, {"k6"}});
  for (const std::size_t other : {0U, 2U, 3U, 4U, 5U}) {
    const Reply reply = clients[other]->read();
    EXPECT_EQ(reply.status, 201) << reply.body;
  }
  door->open();
  EXPECT_EQ(clients[1]->read().status, 201);
  EXPECT_EQ(database.value("SELECT string_agg(key, ' ' ORDER BY key) FROM effects"),
            "k1 k2 k3 k4 k5 k6");
}

// It left the batch before the handler of another one hung.
TEST_F(GateBatchFaults, ARequestThatLeftItsBatchDoesNotWaitForTheHandlerOfAnother) {
  config.gate.lanes = 2;
  config.gate.batch_time = 250ms;
  config.gate.handler_timeout = 1s;
  auto door = std::make_shared<Door>();
  body = [door, tries = std::make_shared<std::atomic<int>>(0)](const Message& message,
                                                               Context& context) {
    const auto key = *message.header("idempotency-key");
    if (key == "k1") throw Reject("no");
    if (key == "k2" && ++*tries == 1) door->pass();
    book(message, context);
  };
  const auto clients = send_batch({{"k1"}, {"k2"}, {"k3"}, {"k4"}, {"k5"}, {"k6"}});
  EXPECT_EQ(clients[0]->read().status, 422);
  for (const std::size_t other : {2U, 3U, 4U, 5U}) EXPECT_EQ(clients[other]->read().status, 201);
  EXPECT_EQ(clients[1]->read().status, 503);
  door->open();
  await_metric("hapax_gate_lost_lanes 0");
  EXPECT_EQ(database.value("SELECT string_agg(key, ' ' ORDER BY key) FROM effects"), "k3 k4 k5 k6");
}

TEST_F(GateBatchFaults, AHandlerThatDoesNotComeBackCostsItsOwnRequest) {
  config.gate.lanes = 2;
  config.gate.batch_time = 250ms;
  config.gate.handler_timeout = 1s;
  auto door = std::make_shared<Door>();
  body = [door](const Message& message, Context& context) {
    if (*message.header("idempotency-key") == "k2") door->pass();
    book(message, context);
  };
  const auto clients = send_batch({{"k1"}, {"k2"}, {"k3"}, {"k4"}});
  for (const std::size_t other : {0U, 2U, 3U}) EXPECT_EQ(clients[other]->read().status, 201);
  EXPECT_EQ(clients[1]->read().status, 503);
  await_metric("hapax_gate_lost_lanes 1");
  door->open();
  await_metric("hapax_gate_lost_lanes 0");
  EXPECT_EQ(database.value("SELECT string_agg(key, ' ' ORDER BY key) FROM effects"), "k1 k3 k4");
  EXPECT_EQ(post("k2").status, 201) << "its key is free";
}

// Before its batch is broken up.
TEST_F(GateBatchFaults, AHandlerThatIsGivenUpKeepsNoOtherForever) {
  config.gate.handler_timeout = 1s;
  auto door = std::make_shared<Door>();
  body = [door](const Message& message, Context& context) {
    if (*message.header("idempotency-key") == "k2") door->pass();
    book(message, context);
  };
  const auto clients = send_batch({{"k1"}, {"k2"}, {"k3"}});
  EXPECT_EQ(clients[1]->read().status, 503);
  door->open();
  for (const std::size_t other : {0U, 2U}) EXPECT_EQ(clients[other]->read().status, 201);
  EXPECT_EQ(effects(), "k1=10 k3=10");
}

TEST_F(GateBatchFaults, AStatementThatTakesLongRunsAlone) {
  config.gate.batch_time = 250ms;
  body = [](const Message& message, Context& context) {
    book(message, context);
    if (*message.header("idempotency-key") == "k3") context.sql("SELECT pg_sleep(0.4)");
  };
  for (const Reply& reply : ask_batch({{"k1"}, {"k2"}, {"k3"}})) EXPECT_EQ(reply.status, 201);
  EXPECT_TRUE(transactions().ends_with(" k3")) << transactions();
}

// Each is short enough, all of them are not.
TEST_F(GateBatchFaults, HandlersThatTakeLongTogetherDoNotShare) {
  config.gate.batch_time = 250ms;
  body = [](const Message& message, Context& context) {
    context.sql("SELECT pg_sleep(0.1)");
    book(message, context);
  };
  for (const Reply& reply : ask_batch({{"k1"}, {"k2"}, {"k3"}, {"k4"}}))
    EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(database.count("SELECT count(*) FROM effects"), 4);
  EXPECT_EQ(database.value("SELECT max(n) < 4 FROM (SELECT count(*) AS n FROM effects GROUP BY "
                           "xmin::text) t"),
            "t");
}

}  // namespace
}  // namespace hapax::gate
