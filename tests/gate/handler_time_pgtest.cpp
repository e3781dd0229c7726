// A handler of the gate that does not come back.
#include "gate/gate_case.hpp"

namespace hapax::gate {
namespace {

using namespace std::chrono_literals;

class HandlerTimeout : public GateCase {
 protected:
  HandlerTimeout() {
    config.gate.handler_timeout = 1s;
    body = [passed = door](const Message& message, Context& context) {
      book(message, context);
      if (*message.payload() == "hangs") passed->pass();
      if (*message.payload() == "rejects-late") {
        passed->pass();
        throw Reject("too late");
      }
    };
  }
  ~HandlerTimeout() override { door->open(); }

  void await_lost(int lanes) {
    await_metric(gate(), "hapax_gate_lost_lanes", std::to_string(lanes));
  }

  std::shared_ptr<Door> door = std::make_shared<Door>();  // handlers outlive the test
};

TEST_F(HandlerTimeout, AnswersThatNothingTookEffectAndKeepsThatPromise) {
  for (const std::string late : {"hangs", "rejects-late"}) {
    const Reply reply = post(late, late);
    EXPECT_EQ(reply.status, 503) << reply.body;
    EXPECT_EQ(reply.header("retry-after"), "1");
    EXPECT_NE(reply.body.find("took no effect"), std::string::npos) << reply.body;
  }
  await_lost(2);
  EXPECT_EQ(post("other").status, 201);  // of the lanes that are left
  door->open();
  await_lost(0);
  EXPECT_EQ(effects(), "other=10");
  EXPECT_EQ(keys(), 1);
  EXPECT_EQ(post("hangs", "hangs").status, 201);
  EXPECT_EQ(runs, 4);
}

TEST_F(HandlerTimeout, AnswersWhoWaitsForTheSameKey) {
  config.gate.handler_timeout = 2s;
  config.gate.wait = 20s;
  const std::string text = request("POST", "/payments", keyed("k1"), "hangs");
  HttpClient first(port()), second(port());
  first.send(text);
  door->await_waiting(1);
  second.send(text);
  EXPECT_EQ(first.read().status, 503);
  EXPECT_EQ(second.read().status, 503);
  EXPECT_EQ(runs, 1);
}

TEST_F(HandlerTimeout, FreesItsKeyOnceItsSessionIsIdleForTooLong) {
  options.idle_in_transaction_timeout = 2s;
  EXPECT_EQ(post("k1", "hangs").status, 503);
  await_lost(1);
  Reply reply = post("k1", "now it works");
  for (const auto deadline = std::chrono::steady_clock::now() + kGatePatience;
       reply.status == 409 && std::chrono::steady_clock::now() < deadline;)
    reply = post("k1", "now it works");
  EXPECT_EQ(reply.status, 201) << reply.body;
  door->open();
  await_lost(0);
  EXPECT_EQ(effects(), "k1=now it works");
}

TEST_F(HandlerTimeout, DoesNotCountItsStatementsNorTheWaitForAKey) {
  config.gate.handler_timeout = 1s;
  config.gate.wait = 20s;
  body = [](const Message& message, Context& context) {
    context.sql("SELECT pg_sleep(1.3)");
    book(message, context);
  };
  const auto other = make_gate();
  HttpClient first(port()), second(other->gate.port());
  const std::string text = request("POST", "/payments", keyed("k1"), "10");
  first.send(text);
  second.send(text);  // waits in PostgreSQL for the first
  EXPECT_EQ(first.read().status, 201);
  EXPECT_EQ(second.read().status, 201);
  EXPECT_EQ(runs, 1);
}

TEST_F(HandlerTimeout, EndsTheGateIfNoLaneIsLeft) {
  config.gate.lanes = 1;
  EXPECT_FALSE(gate().gate.hangs());
  EXPECT_EQ(post("k1", "hangs").status, 503);
  await_lost(1);
  EXPECT_TRUE(gate().gate.hangs());
  HttpClient queued(port());
  queued.send(request("POST", "/payments", keyed("k2"), "10"));
  await_metric(gate(), "hapax_gate_queue", "1");
  EXPECT_FALSE(gate().gate.drain());
  EXPECT_EQ(queued.read().status, 503);
}

// The lane has taken it already, for the round trip of the COMMIT that failed.
TEST_F(HandlerTimeout, OfOneThatRunsAgainIsNotWaitedForByTheRequestBehindIt) {
  config.gate.handler_timeout = 60s;
  config.gate.lanes = 2;
  database.run(
      "CREATE SEQUENCE commits; GRANT USAGE ON SEQUENCE commits TO hapax_worker;"
      "CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF nextval('commits') = 1 THEN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END IF; "
      "RETURN NULL; END $$;"
      "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW WHEN (new.key = 'k1') EXECUTE FUNCTION fail_once()");
  Door other_lane, first_run;
  std::atomic<int> runs_of_k1 = 0;
  body = [&, again = door](const Message& message, Context& context) {
    if (*message.payload() == "busy") other_lane.pass();
    if (*message.payload() == "fails once") (++runs_of_k1 == 1 ? first_run : *again).pass();
    book(message, context);
  };
  HttpClient busy(port()), first(port()), behind(port());
  busy.send(request("POST", "/payments", keyed("k0"), "busy"));
  other_lane.await_waiting(1);
  first.send(request("POST", "/payments", keyed("k1"), "fails once"));
  first_run.await_waiting(1);
  behind.send(request("POST", "/payments", keyed("k2"), "10"));
  await_metric(gate(), "hapax_gate_queue", "1");
  first_run.open();
  door->await_waiting(1);
  other_lane.open();
  EXPECT_EQ(behind.read().status, 201);
  door->open();
  EXPECT_EQ(first.read().status, 201);
  EXPECT_EQ(busy.read().status, 201);
  EXPECT_EQ(effects(), "k0=busy k2=10 k1=fails once");
}

TEST_F(HandlerTimeout, HoldsForSafeMethodsToo) {
  config.gate.routes[0].methods = {"POST", "GET"};
  body = [passed = door](const Message&, Context&) { passed->pass(); };
  EXPECT_EQ(ask(request("GET", "/payments", as_ann())).status, 503);
}

}  // namespace
}  // namespace hapax::gate
