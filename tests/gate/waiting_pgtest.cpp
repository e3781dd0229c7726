// The gate under parallel requests, without room, and without PostgreSQL.
#include <algorithm>
#include <thread>

#include "gate/gate_case.hpp"
#include "sandbox/proxy.hpp"
#include "store/transaction.hpp"

namespace hapax::gate {
namespace {

using Waiting = GateCase;

// Sends the request and leaves the answer for later.
std::unique_ptr<HttpClient> begin(std::uint16_t port, const std::string& text) {
  auto client = std::make_unique<HttpClient>(port);
  client->send(text);
  return client;
}

TEST_F(Waiting, TwoHundredParallelRequestsAreOneEffect) {
  config.gate.wait = std::chrono::seconds(20);
  body = [](const Message& message, Context& context) {
    context.sql("SELECT pg_sleep(0.05)");
    book(message, context);
  };
  const auto other = make_gate();  // as a second process
  const std::string text = request("POST", "/payments", keyed("k1"), "10");
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 200; ++i)
    clients.push_back(begin(i % 2 == 0 ? port() : other->gate.port(), text));
  int replayed = 0;
  for (const auto& client : clients) {
    const Reply reply = client->read();
    EXPECT_EQ(reply.status, 201) << reply.body;
    EXPECT_EQ(reply.body, R"({"id":17})");
    replayed += reply.header("idempotent-replayed") == "true" ? 1 : 0;
  }
  EXPECT_EQ(replayed, 199);
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(runs, 1);
}

TEST_F(Waiting, ARequestInFlightIsWaitedForAndThenRefused) {
  Door door;
  body = [&](const Message& message, Context& context) {
    door.pass();
    book(message, context);
  };
  const auto other = make_gate();
  const std::string text = request("POST", "/payments", keyed("k1"), "10");
  const auto first = begin(port(), text);
  door.await_waiting(1);
  for (const std::uint16_t at : {port(), other->gate.port()}) {
    const auto began = Clock::now();
    const Reply reply = ask(text, at);
    EXPECT_EQ(reply.status, 409) << reply.body;
    EXPECT_EQ(reply.header("retry-after"), "1");
    EXPECT_GE(Clock::now() - began, std::chrono::milliseconds(250));
  }
  door.open();
  EXPECT_EQ(first->read().status, 201);
  EXPECT_EQ(ask(text).header("idempotent-replayed"), "true");
  EXPECT_EQ(runs, 1);
}

TEST_F(Waiting, WhoWaitsForAnotherRequestIsNotGivenItsAnswer) {
  config.gate.wait = std::chrono::seconds(20);
  Door door;
  body = [&](const Message& message, Context& context) {
    door.pass();
    if (*message.payload() == "bad") throw std::runtime_error("no");
    book(message, context);
  };
  const auto first = begin(port(), request("POST", "/payments", keyed("k1"), "10"));
  const auto bad = begin(port(), request("POST", "/payments", keyed("k2"), "bad"));
  door.await_waiting(2);
  const auto drifted = begin(port(), request("POST", "/payments", keyed("k1"), "11"));
  const auto next = begin(port(), request("POST", "/payments", keyed("k2"), "good"));
  const auto same = begin(port(), request("POST", "/payments", keyed("k2"), "bad"));
  await_metric(gate(), "hapax_gate_waiting", "3");
  door.open();
  EXPECT_EQ(first->read().status, 201);
  EXPECT_EQ(drifted->read().status, 422);
  EXPECT_EQ(bad->read().status, 500);
  EXPECT_EQ(next->read().status, 201);
  EXPECT_EQ(same->read().status, 500);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(database.value("SELECT key, note FROM effects ORDER BY key"), "k1|10\nk2|good");
}

TEST_F(Waiting, WithoutRoomTheAnswerComesAtOnce) {
  config.gate.lanes = 1;
  config.gate.queue = 2;
  Door door;
  body = [&](const Message& message, Context& context) {
    door.pass();
    book(message, context);
  };
  const auto text = [](const std::string& key) {
    return request("POST", "/payments", keyed(key), "10");
  };
  std::vector<std::unique_ptr<HttpClient>> taken;
  taken.push_back(begin(port(), text("k1")));
  door.await_waiting(1);
  taken.push_back(begin(port(), text("k2")));
  taken.push_back(begin(port(), text("k3")));
  await_metric(gate(), "hapax_gate_queue", "2");
  const Reply reply = ask(text("k4"));
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.header("retry-after"), "1");
  door.open();
  for (const auto& client : taken) EXPECT_EQ(client->read().status, 201);
  EXPECT_EQ(ask(text("k4")).header("idempotent-replayed"), "");
  EXPECT_EQ(metric(gate(), "hapax_gate_requests_total{outcome=\"executed\",route=\"/payments\"}"),
            "4");
  EXPECT_EQ(
      metric(gate(), "hapax_gate_requests_total{outcome=\"unavailable\",route=\"/payments\"}"),
      "1");
}

// One lane. The key of the request that follows is taken in the round trip that commits the one
// before it.
class Following : public GateCase {
 protected:
  Following() { config.gate.lanes = 1; }

  // These wait in the queue while the first one runs. Their answers, in their order.
  std::vector<Reply> post_behind_one_another(const std::vector<std::string>& wanted) {
    Door door;
    body = [&, book = body](const Message& message, Context& context) {
      door.pass();
      book(message, context);
    };
    std::vector<std::unique_ptr<HttpClient>> clients;
    for (const std::string& key : wanted) {
      clients.push_back(begin(port(), request("POST", "/payments", keyed(key), "10")));
      if (clients.size() == 1) door.await_waiting(1);
    }
    await_metric(gate(), "hapax_gate_queue", std::to_string(wanted.size() - 1));
    door.open();
    std::vector<Reply> replies;
    for (const auto& client : clients) replies.push_back(client->read());
    return replies;
  }
};

TEST_F(Following, RunsInItsTurn) {
  for (const Reply& reply : post_behind_one_another({"k1", "k2", "k3"})) {
    EXPECT_EQ(reply.status, 201) << reply.body;
    EXPECT_EQ(reply.header("idempotent-replayed"), "");
  }
  EXPECT_EQ(effects(), "k1=10 k2=10 k3=10");
  EXPECT_EQ(keys(), 3);
}

TEST_F(Following, ThatWasCompletedBeforeIsReplayed) {
  EXPECT_EQ(post("k2").status, 201);
  const auto replies = post_behind_one_another({"k1", "k2", "k3"});
  EXPECT_EQ(replies[1].header("idempotent-replayed"), "true");
  EXPECT_EQ(replies[2].status, 201);
  EXPECT_EQ(effects(), "k2=10 k1=10 k3=10");
}

TEST_F(Following, WhoseKeyAnotherProcessHasDoesNotFailTheOneBefore) {
  store::Session other(database.owner());
  store::Transaction holding(other);
  holding.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, tenant, status, fingerprint, "
      "fingerprint_rule, group_id, topic, generation, partition, kafka_offset, expires_at) VALUES "
      "('k2', 'gate', 'ann', 'completed', '', 'http-1', 'gate', '/payments', 0, 0, 7, now() + "
      "interval '1 day')");
  const auto replies = post_behind_one_another({"k1", "k2", "k3"});
  EXPECT_EQ(replies[0].status, 201) << replies[0].body;
  EXPECT_EQ(replies[0].header("idempotent-replayed"), "");
  EXPECT_EQ(replies[1].status, 409) << replies[1].body;
  EXPECT_EQ(replies[2].status, 201);
  EXPECT_EQ(effects(), "k1=10 k3=10");
  EXPECT_EQ(runs, 2);
}

TEST_F(Following, OfOneThatFailsAtItsCommitRuns) {
  database.run(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE EXCEPTION 'no' USING ERRCODE = '23514'; END $$;"
      "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW WHEN (new.key = 'k1') EXECUTE FUNCTION refuse()");
  const auto replies = post_behind_one_another({"k1", "k2"});
  EXPECT_EQ(replies[0].status, 500) << replies[0].body;
  EXPECT_EQ(replies[1].status, 201) << replies[1].body;
  EXPECT_EQ(effects(), "k2=10");
  EXPECT_EQ(keys(), 1);
}

// The other lane is busy, so that both are of one lane, and may wait for a session that dies.
TEST_F(Following, OfOneWhoseAnswerIsLostRunsOnce) {
  std::atomic<int> cuts = 0;
  sandbox::Proxy proxy({"127.0.0.1", std::to_string(test::postgres().port())}, {},
                       [&](int, sandbox::Proxy::From from, const std::string& text) {
                         const bool commits = from == sandbox::Proxy::From::client &&
                                              text.find(";COMMIT;BEGIN") != std::string::npos;
                         return commits && cuts++ == 0 ? sandbox::Proxy::Then::forward_and_cut
                                                       : sandbox::Proxy::Then::forward;
                       });
  options = test::through_port(options, proxy.port());
  config.gate.lanes = 2;
  config.gate.wait = std::chrono::seconds(10);
  add_route({"/slow"});
  Door slow;
  body = [&](const Message& message, Context& context) {
    if (message.topic() == "/slow") return slow.pass();
    book(message, context);
  };
  Door door;
  body = [&, inner = body](const Message& message, Context& context) {
    if (message.topic() != "/slow") door.pass();
    inner(message, context);
  };
  const auto busy = begin(port(), request("POST", "/slow", keyed("k0"), "10"));
  slow.await_waiting(1);
  const auto first = begin(port(), request("POST", "/payments", keyed("k1"), "10"));
  door.await_waiting(1);
  const auto second = begin(port(), request("POST", "/payments", keyed("k2"), "10"));
  await_metric(gate(), "hapax_gate_queue", "1");
  door.open();
  EXPECT_EQ(first->read().status, 201);
  EXPECT_EQ(second->read().status, 201);
  EXPECT_GE(cuts, 1) << "no key was taken with a COMMIT";
  EXPECT_EQ(effects(), "k1=10 k2=10");
  EXPECT_EQ(runs, 3);
  slow.open();
  EXPECT_EQ(busy->read().status, 204);
}

TEST_F(Waiting, WithoutPostgresNothingRunsAndTheGateLives) {
  auto proxy = std::make_unique<sandbox::Proxy>(
      sandbox::Proxy::Target{"127.0.0.1", std::to_string(test::postgres().port())});
  const auto direct = options;
  options = test::through_port(options, proxy->port());
  EXPECT_EQ(post("k1").status, 201);
  proxy.reset();  // cuts what is open, refuses what is new
  for (int i = 0; i < 3; ++i) {
    const Reply reply = post("k2");
    EXPECT_EQ(reply.status, 503) << reply.body;
    EXPECT_EQ(reply.header("retry-after"), "1");
  }
  EXPECT_EQ(ask(request("GET", "/healthz", {})).status, 200);
  EXPECT_EQ(ask(request("GET", "/readyz", {})).status, 503);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(effects(), "k1=10");
  options = direct;
  EXPECT_EQ(ask(request("POST", "/payments", keyed("k2"), "10"), make_gate()->gate.port()).status,
            201);
}

TEST_F(Waiting, ConnectionsThatPostgresEndsAreReplaced) {
  EXPECT_EQ(post("k1").status, 201);
  database.run(
      "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = "
      "'hapax_worker' AND "
      "datname = current_database()");
  EXPECT_EQ(post("k2").status, 201);
  EXPECT_EQ(post("k1").header("idempotent-replayed"), "true");
  EXPECT_EQ(effects(), "k1=10 k2=10");
}

TEST_F(Waiting, ConnectionsThatPostgresEndsAreReplacedForSafeRequestsToo) {
  config.gate.routes[0].methods = {"GET", "POST"};
  body = [](const Message&, Context& context) { context.respond(200, {}, "read"); };
  EXPECT_EQ(ask(request("GET", "/payments", as_ann())).status, 200);
  database.run(
      "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = "
      "'hapax_worker' AND "
      "datname = current_database()");
  EXPECT_EQ(ask(request("GET", "/payments", as_ann())).status, 200);
}

TEST_F(Waiting, EveryCommitIsSynchronous) {
  database.run(
      "CREATE TABLE commits (setting text); GRANT INSERT ON commits TO hapax_worker;"
      "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "INSERT INTO commits VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;"
      "CREATE CONSTRAINT TRIGGER last AFTER INSERT OR UPDATE ON hapax.idempotency_keys "
      "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();"
      "ALTER ROLE hapax_worker SET synchronous_commit = off");
  body = [](const Message& message, Context& context) {
    if (*message.payload() == "reject") throw Reject("no");
    book(message, context);
    context.write("SET LOCAL synchronous_commit = off");
  };
  EXPECT_EQ(post("k1").status, 201);
  EXPECT_EQ(post("k2", "reject").status, 422);
  EXPECT_EQ(database.value("SELECT DISTINCT setting FROM commits"), "on");
  database.run("ALTER ROLE hapax_worker SET synchronous_commit = remote_apply");
  const auto other = make_gate();
  database.run("TRUNCATE commits");
  EXPECT_EQ(ask(request("POST", "/payments", keyed("k3"), "reject"), other->gate.port()).status,
            422);
  EXPECT_EQ(database.value("SELECT DISTINCT setting FROM commits"), "remote_apply");
  // What a worker of the same scope completed may not be on the disk yet.
  database.run("UPDATE hapax.idempotency_keys SET group_id = 'worker'");
  database.run("TRUNCATE commits");
  EXPECT_EQ(post("k1").header("idempotent-replayed"), "true");
  EXPECT_EQ(database.value("SELECT DISTINCT setting FROM commits"), "on");
  database.run("ALTER ROLE hapax_worker RESET synchronous_commit");
}

TEST_F(Waiting, AHandlerThatCommitsByItselfClosesItsRoute) {
  add_route({"/others"});
  body = [](const Message& message, Context& context) {
    book(message, context);
    if (message.topic() == "/payments") context.sql("COMMIT");
  };
  EXPECT_EQ(post("k1").status, 500);
  EXPECT_EQ(post("k1").status, 503);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(post("k2", "10", {}, "/others").status, 201);
  EXPECT_EQ(ask(request("GET", "/readyz", {})).status, 503);
}

TEST_F(Waiting, AKeyThatAnOperatorForgotRunsAgain) {
  EXPECT_EQ(post("k1").status, 201);
  database.run("UPDATE hapax.idempotency_keys SET status = 'forgotten'");
  EXPECT_EQ(post("k1", "11").header("idempotent-replayed"), "");
  EXPECT_EQ(effects(), "k1=10 k1=11");
}

TEST_F(Waiting, ADrainAnswersWhatIsInFlight) {
  Door door;
  body = [&](const Message& message, Context& context) {
    door.pass();
    book(message, context);
  };
  HttpClient idle(port());
  const auto busy = begin(port(), request("POST", "/payments", keyed("k1"), "10"));
  door.await_waiting(1);
  std::thread drain([&] { EXPECT_TRUE(gate().gate.drain()); });
  EXPECT_TRUE(idle.ends());
  EXPECT_THROW(
      {
        HttpClient late(port());
        if (!late.ends()) throw std::logic_error("is served");
        throw std::runtime_error("is closed");
      },
      std::runtime_error);
  EXPECT_FALSE(gate().status.ready().ok);
  door.open();
  const Reply reply = busy->read();
  EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(reply.header("connection"), "close");
  EXPECT_TRUE(busy->ends());
  drain.join();
}

TEST_F(Waiting, ADrainDoesNotWaitForWhoStillSends) {
  const auto in_header = begin(port(), "POST /payments HTTP/1.1\r\nHost: gate\r\n");
  Headers headers = keyed("k1", {{"Expect", "100-continue"}});
  headers.emplace_back("Content-Length", "10");
  const auto in_body = begin(port(), request("POST", "/payments", headers));
  EXPECT_EQ(in_body->read().status, 100);
  in_body->send("1");
  const auto began = Clock::now();
  EXPECT_TRUE(gate().gate.drain());
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(5));
  EXPECT_TRUE(in_header->ends());
  EXPECT_TRUE(in_body->ends());
}

TEST_F(Waiting, ADrainEndsInTimeBesideAHandlerThatDoesNot) {
  config.gate.shutdown_timeout = std::chrono::milliseconds(100);
  Door door;
  body = [&](const Message&, Context&) { door.pass(); };
  const auto busy = begin(port(), request("POST", "/payments", keyed("k1"), "10"));
  door.await_waiting(1);
  EXPECT_FALSE(gate().gate.drain());
  door.open();
  EXPECT_EQ(busy->read().status, 204);
}

}  // namespace
}  // namespace hapax::gate
