// What a hostile client or a careless handler may do to the gate, and to its other callers.
#include <functional>

#include "gate/gate_case.hpp"
#include "sandbox/proxy.hpp"

namespace hapax::gate {
namespace {

using Attacks = GateCase;

constexpr const char* kChunked =
    "POST /payments HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer token-of-ann\r\n"
    "Idempotency-Key: k1\r\nTransfer-Encoding: chunked\r\n\r\n";

bool tells(const Reply& reply, const std::string& part) {
  return reply.body.find(part) != std::string::npos;
}

// How many bytes the gate takes before it closes, at most 64 MiB.
std::size_t taken_of(HttpClient& client, const std::string& piece) {
  std::size_t taken = 0;
  while (taken < std::size_t{64} << 20 && client.send(piece)) taken += piece.size();
  return taken;
}

TEST_F(Attacks, ATrailerIsBounded) {
  HttpClient client(port());
  client.send(kChunked + ("0\r\nX: " + std::string(70'000, 'a')) + "\r\n\r\n");
  EXPECT_EQ(client.read().status, 400);
  EXPECT_TRUE(client.ends());
  EXPECT_EQ(ask(request("GET", "/healthz", {})).status, 200);
  EXPECT_EQ(runs, 0);
}

TEST_F(Attacks, FramingThatNeverEndsIsNotKept) {
  std::string trailer;
  while (trailer.size() < 16'000) trailer += "X: " + std::string(100, 'a') + "\r\n";
  HttpClient extension(port());
  extension.send(kChunked + std::string("1;"));
  EXPECT_LT(taken_of(extension, std::string(16'000, 'a')), std::size_t{32} << 20);
  HttpClient trailers(port());
  trailers.send(kChunked + std::string("0\r\n"));
  EXPECT_LT(taken_of(trailers, trailer), std::size_t{32} << 20);
  EXPECT_EQ(runs, 0);
}

TEST_F(Attacks, AnAnswerThatCannotBeSentIsRefusedBeforeItIsStored) {
  body = [](const Message& message, Context& context) {
    context.respond(200, {{"Link", std::string(std::stoul(std::string(*message.payload())), 'a')}});
  };
  EXPECT_EQ(post("k1", "70000").status, 500);
  EXPECT_EQ(post("k1", "8193").status, 500);
  EXPECT_EQ(keys(), 0);
  EXPECT_EQ(post("k1", "8192").status, 200);
}

TEST_F(Attacks, AnAnswerThatCannotBeSentEndsItsConnectionOnly) {
  EXPECT_EQ(post("k1").status, 201);
  database.run(
      R"(UPDATE hapax.idempotency_keys SET result = json_build_object('hapax:response',
         json_build_object('status', 200, 'body', '', 'headers',
                           json_build_array(json_build_array('Link', repeat('a', 70000))))))");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(post("k1").status, 0);
  EXPECT_EQ(post("k2").status, 201);
}

TEST_F(Attacks, WhatOneStatementMeetsIsNoOutage) {
  body = [](const Message& message, Context& context) {
    if (*message.payload() == "57P01")
      context.sql("SELECT pg_terminate_backend(pg_backend_pid())");
    else if (message.payload()->size() == 5)
      context.sql("DO $$ BEGIN RAISE EXCEPTION 'card 4111' USING ERRCODE = '" +
                  std::string(*message.payload()) + "'; END $$");
    book(message, context);
  };
  testing::internal::CaptureStderr();
  for (const char* state : {"53400", "53200", "53100", "58030", "57P01"}) {
    const Reply reply = post("k1", state);
    EXPECT_EQ(reply.status, 503) << state << reply.body;
    EXPECT_EQ(reply.header("retry-after"), "1");
    EXPECT_EQ(post(std::string("after-") + state).status, 201) << state;
    EXPECT_EQ(ask(request("GET", "/readyz", {})).status, 200) << state;
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("request_failed"), std::string::npos) << log;
  EXPECT_EQ(log.find("4111"), std::string::npos) << log;
  EXPECT_EQ(log.find("postgres_down"), std::string::npos) << log;
}

TEST_F(Attacks, NoAnswerTellsThatARequestInDoubtTookNoEffect) {
  std::atomic<bool> away = false, stays_away = false;
  const auto server = test::postgres().port();
  sandbox::Proxy proxy(
      {"127.0.0.1", std::to_string(server)}, {},
      [&](int, sandbox::Proxy::From from, const std::string& text) {
        if (from == sandbox::Proxy::From::client && text.find(";COMMIT") != std::string::npos) {
          away = stays_away.load();
          return stays_away ? sandbox::Proxy::Then::forward_and_cut : sandbox::Proxy::Then::cut;
        }
        return away ? sandbox::Proxy::Then::cut : sandbox::Proxy::Then::forward;
      });
  options = test::through_port(options, proxy.port());
  config.gate.lanes = 2;  // with one, a claim waits 50 ms, and the cut session may end later
  config.gate.wait = std::chrono::seconds(10);
  for (const bool stays : {false, true}) {  // PostgreSQL is there again, or is not
    stays_away = stays;
    testing::internal::CaptureStderr();
    const Reply reply = post(stays ? "k2" : "k1");
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(reply.status, 503) << reply.body;
    EXPECT_EQ(reply.header("retry-after"), "1");
    EXPECT_TRUE(tells(reply, "It is not known whether it took effect.")) << reply.body;
    EXPECT_NE(log.find("request_in_doubt"), std::string::npos) << log;
    EXPECT_EQ(log.find("took no effect"), std::string::npos) << log;
  }
  database.wait_until("SELECT count(*) FROM effects", "1");
}

// PostgreSQL may answer so behind a COMMIT that was done.
TEST_F(Attacks, NoAnswerTellsThatARequestWhoseCommitWasCancelledTookNoEffect) {
  database.run(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE EXCEPTION 'no' USING ERRCODE = NEW.note; END $$;"
      "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW EXECUTE FUNCTION refuse()");
  body = [](const Message& message, Context& context) {
    context.sql("INSERT INTO effects (key, note) VALUES ('k', $1)", *message.payload());
  };
  for (const char* state : {"57014", "58030", "53100"}) {
    const Reply reply = post("k1", state);
    EXPECT_EQ(reply.status, 503);
    EXPECT_TRUE(tells(reply, "It is not known whether it took effect.")) << reply.body;
  }
  EXPECT_TRUE(tells(post("k1", "23505"), "The request took no effect."));
}

TEST_F(Attacks, NoAnswerTellsThatWhatAHandlerCommittedTookNoEffect) {
  body = [](const Message& message, Context& context) {
    book(message, context);
    context.sql("COMMIT");
  };
  testing::internal::CaptureStderr();
  const Reply reply = post("k1");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(reply.header("retry-after"), "");
  EXPECT_TRUE(tells(reply, "part of it may have taken effect")) << reply.body;
  EXPECT_NE(log.find("request_in_part"), std::string::npos) << log;
  EXPECT_EQ(log.find("took no effect"), std::string::npos) << log;
}

TEST_F(Attacks, KeysOfAnotherProcessLeaveLanesToOthers) {
  config.gate.wait = std::chrono::seconds(15);
  Door door;
  body = [&](const Message& message, Context& context) {
    if (*message.payload() == "slow") door.pass();
    book(message, context);
  };
  const auto other = make_gate();
  std::vector<std::unique_ptr<HttpClient>> slow, again;
  const auto send = [](auto& clients, std::uint16_t at, int key) {
    clients.push_back(std::make_unique<HttpClient>(at));
    clients.back()->send(request("POST", "/payments", keyed("slow" + std::to_string(key)), "slow"));
  };
  for (int key = 0; key < 4; ++key) send(slow, port(), key);
  door.await_waiting(4);
  for (int key = 0; key < 4; ++key) send(again, other->gate.port(), key);
  database.wait_until("SELECT count(*) >= 2 FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
                      "t");
  const auto began = Clock::now();
  EXPECT_EQ(ask(request("POST", "/payments", keyed("k1"), "10"), other->gate.port()).status, 201);
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(10));
  // Who waits for a key is refused before its first holder is done.
  await_metric(*other, R"(hapax_gate_requests_total{outcome="in_flight",route="/payments"})", "2");
  door.open();
  int refused = 0;
  for (const auto& client : again) refused += client->read().status == 409 ? 1 : 0;
  EXPECT_EQ(refused, 2);
  EXPECT_EQ(runs, 5);
}

TEST_F(Attacks, WhoIsNotKnownLearnsNothing) {
  const std::string line = " HTTP/1.1\r\nHost: gate\r\n";
  for (const std::string& head :
       {"POST /nowhere" + line, "DELETE /payments" + line, "OPTIONS /payments" + line,
        "POST payments" + line, "POST /payments" + line + "Content-Length: 99999999\r\n",
        "POST /payments" + line + "Content-Encoding: gzip\r\n",
        "POST /payments" + line + "Expect: miracles\r\n"})
    EXPECT_EQ(ask(head + "\r\n").status, 401) << head;
  EXPECT_EQ(post("k1", std::string(2 << 20, 'x')).status, 413);
}

TEST_F(Attacks, ASafeMethodThatCommitsClosesItsRoute) {
  config.gate.routes[0].methods = {"GET", "POST"};
  add_route({"/others", {"GET"}});
  body = [](const Message& message, Context& context) {
    context.sql("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE");
    context.sql("COMMIT");
    book(message, context);
    if (message.topic() == "/others") throw std::runtime_error("no");
  };
  for (const char* path : {"/payments", "/others"}) {
    const Reply reply = ask(request("GET", path, as_ann()));
    EXPECT_EQ(reply.status, 500) << reply.body;
    EXPECT_TRUE(tells(reply, "part of it may have taken effect")) << reply.body;
    EXPECT_EQ(ask(request("GET", path, as_ann())).status, 503);
  }
  EXPECT_EQ(runs, 2);
}

TEST_F(Attacks, ASpellingOfAPathLeadsToTheSameTenants) {
  add_route({"/a/{x}"});
  add_route({"/a/admin", {"POST"}, {"bob"}});
  EXPECT_EQ(post("k1", "10", {}, "/a/admin").status, 403);
  EXPECT_EQ(post("k1", "10", {}, "/a/%61dmin").status, 403);
  EXPECT_EQ(post("k1", "10", {}, "/a/admi").status, 201);
}

TEST_F(Attacks, ContentTypesDifferByWhatTheyMean) {
  const auto typed = [&](const std::string& type) {
    return post("k1", "10", {{"Content-Type", type}});
  };
  EXPECT_EQ(typed("multipart/mixed; boundary=aB; x=\"A ;B\"").status, 201);
  EXPECT_EQ(typed("Multipart/Mixed;Boundary=aB;X=\"A ;B\"").header("idempotent-replayed"), "true");
  EXPECT_EQ(typed("multipart/mixed; boundary=ab; x=\"A ;B\"").status, 422);
  EXPECT_EQ(typed("multipart/mixed; boundary=aB; x=\"a ;b\"").status, 422);
  EXPECT_EQ(typed("multipart/mixed; boundary=aB; x=\"A;B\"").status, 422);
  EXPECT_EQ(
      post("k2", "10", {{"Content-Type", "text/plain"}, {"Content-Type", "text/html"}}).status,
      400);
}

TEST_F(Attacks, AProxyNamesOneTenantOrNone) {
  config.gate.callers.header = "x-tenant";
  config.gate.callers.proxies = {*config::parse_network("127.0.0.1")};
  EXPECT_EQ(post("k1", "10", {{"X-Tenant", "cid"}}).status, 201);
  EXPECT_EQ(post("k1", "10", {{"X-Tenant", "cid"}, {"X-Tenant", "dan"}}).status, 401);
  EXPECT_EQ(post("k1").status, 401);
}

TEST_F(Attacks, AnAnswerWithoutABodyHasNoLength) {
  body = [](const Message& message, Context& context) {
    context.respond(std::stoi(std::string(*message.payload())));
  };
  for (const char* status : {"204", "304"}) {
    const Reply reply = post(status, status);
    EXPECT_EQ(std::to_string(reply.status), status);
    EXPECT_EQ(reply.headers.count("content-length"), 0U);
  }
  EXPECT_EQ(post("200", "200").header("content-length"), "0");
}

}  // namespace
}  // namespace hapax::gate
