// The contract of the gate (docs/gate.md), row by row, over real sockets.
#include <set>
#include <thread>

#include "gate/gate_case.hpp"
#include "sandbox/proxy.hpp"

namespace hapax::gate {
namespace {

using Contract = GateCase;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_problem(const Reply& reply, int status, const std::string& type) {
  EXPECT_EQ(reply.status, status) << reply.body;
  EXPECT_EQ(reply.header("content-type"), "application/problem+json");
  const auto body = nlohmann::json::parse(reply.body, nullptr, false);
  ASSERT_TRUE(body.is_object()) << reply.body;
  EXPECT_EQ(body.value("type", ""), "urn:hapax:gate:" + type);
  EXPECT_EQ(body.value("status", 0), status);
  EXPECT_NE(body.value("title", ""), "");
  EXPECT_NE(body.value("detail", ""), "");
}

TEST_F(Contract, ARequestTakesEffectAndIsAnswered) {
  const Reply reply = post("k1");
  EXPECT_EQ(reply.status, 201) << reply.body;
  EXPECT_EQ(reply.body, R"({"id":17})");
  EXPECT_EQ(reply.header("location"), "/payments/17");
  EXPECT_EQ(reply.header("idempotent-replayed"), "");
  EXPECT_EQ(reply.header("idempotency-key-lifetime"), "604800");
  EXPECT_TRUE(has(reply.header("idempotency-key-expires"), " GMT"));
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(database.value("SELECT key, scope, tenant, status, group_id, topic, fingerprint_rule "
                           "FROM hapax.idempotency_keys"),
            "k1|gate|ann|completed|gate|/payments|http-1");
}

TEST_F(Contract, AKeyThatIsMissingOrUnusableIsRefused) {
  expect_problem(ask(request("POST", "/payments", as_ann(), "10")), 400, "key-missing");
  for (const std::string& key :
       {std::string(), std::string(256, 'k'), std::string("\"\""), std::string("\"open"),
        std::string("two words"), std::string("caf\xC3\xA9"), std::string("\xFF"),
        std::string("\"a\", \"b\""), '"' + std::string(256, 'k') + '"'})
    expect_problem(post(key), 400, "bad-key");
  expect_problem(post("a", "10", {{"Idempotency-Key", "b"}}), 400, "bad-key");
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(keys(), 0);
  EXPECT_EQ(post(std::string(255, 'k')).status, 201);
  EXPECT_EQ(post("a", "10", {{"Idempotency-Key", "\"a\""}}).status, 201);
}

TEST_F(Contract, BothSpellingsAreOneKey) {
  EXPECT_EQ(post(R"("8e03,\"1\"")").status, 201);
  EXPECT_EQ(database.value("SELECT key FROM hapax.idempotency_keys"), R"(8e03,"1")");
  EXPECT_EQ(post("\"17\"").status, 201);
  EXPECT_EQ(post("17").header("idempotent-replayed"), "true");
  EXPECT_EQ(runs, 2);
}

TEST_F(Contract, OnlyKnownCallersAreLetIn) {
  config.gate.routes[0].tenants = {"ann"};
  for (const Headers& headers : {Headers{}, Headers{{"Authorization", "Bearer "}},
                                 Headers{{"Authorization", "Bearer wrong"}},
                                 Headers{{"Authorization", "Basic token-of-ann"}},
                                 Headers{{"Authorization", "Bearer token-of-ann"},
                                         {"Authorization", "Bearer token-of-bob"}}}) {
    Headers with_key = headers;
    with_key.emplace_back("Idempotency-Key", "k1");
    const Reply reply = ask(request("POST", "/payments", with_key, "10"));
    expect_problem(reply, 401, "unauthenticated");
    EXPECT_EQ(reply.header("www-authenticate"), "Bearer");
  }
  expect_problem(
      ask(request("POST", "/payments",
                  {{"Authorization", "Bearer token-of-bob"}, {"Idempotency-Key", "k1"}}, "10")),
      403, "forbidden");
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(post("k1").status, 201);
}

TEST_F(Contract, CallersWithTheSameKeyNeverMeet) {
  EXPECT_EQ(post("k1", "of ann").status, 201);
  const Reply reply =
      ask(request("POST", "/payments",
                  {{"authorization", "bearer token-of-bob"}, {"idempotency-key", "k1"}}, "of bob"));
  EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(reply.header("idempotent-replayed"), "");
  EXPECT_EQ(effects(), "k1=of ann k1=of bob");
}

TEST_F(Contract, AProxyThatIsListedNamesTheTenant) {
  config.gate.callers.tokens.clear();
  config.gate.callers.header = "x-tenant";
  config.gate.callers.proxies = {*config::parse_network("10.0.0.0/8")};
  body = [](const Message& message, Context& context) {
    EXPECT_FALSE(message.header("x-tenant"));
    context.respond(200, {}, std::string(*message.header(":tenant")));
  };
  const Headers headers{{"X-Tenant", "cid"}, {"Idempotency-Key", "k1"}};
  EXPECT_EQ(ask(request("POST", "/payments", headers, "10")).status, 401);
  config.gate.callers.proxies.push_back(*config::parse_network("127.0.0.0/30"));
  const auto other = make_gate();
  EXPECT_EQ(ask(request("POST", "/payments", headers, "10"), other->gate.port()).body, "cid");
}

TEST_F(Contract, ARetryGetsTheStoredAnswer) {
  const std::string bytes("\xFF\x00zwei", 6);
  body = [&](const Message& message, Context& context) {
    book(message, context);
    context.respond(202,
                    {{"Content-Type", "image/png"},
                     {"Set-Cookie", "session=1"},
                     {"ETag", "\"v1\""},
                     {"X-Trace", "1"}},
                    bytes);
  };
  const Reply first = post("k1");
  EXPECT_EQ(first.header("set-cookie"), "session=1");
  const Reply again = post("k1");
  EXPECT_EQ(again.status, 202);
  EXPECT_EQ(again.body, bytes);
  EXPECT_EQ(again.header("content-type"), "image/png");
  EXPECT_EQ(again.header("etag"), "\"v1\"");
  EXPECT_EQ(again.header("idempotent-replayed"), "true");
  EXPECT_EQ(again.header("set-cookie") + again.header("x-trace"), "");
  EXPECT_EQ(again.header("idempotency-key-expires").size(), 29U);
  EXPECT_EQ(runs, 1);
}

// Its cost: the answer, and in a process that has not given it before, the claim that finds the
// key.
TEST_F(Contract, AReplayAsksForItsKeyOnceAndElsewhereTwiceAtFirst) {
  std::atomic<int> asked = 0;
  sandbox::Proxy proxy(
      {"127.0.0.1", std::to_string(test::postgres().port())}, {},
      [&](int, sandbox::Proxy::From from, const std::string& text) {
        if (from == sandbox::Proxy::From::client && text.find("replayed-key") != std::string::npos)
          ++asked;
        return sandbox::Proxy::Then::forward;
      });
  options = test::through_port(options, proxy.port());
  config.gate.lanes = 1;
  post("replayed-key");
  const auto other = make_gate();
  const auto asked_for = [&](const std::string& key, std::uint16_t at) {
    asked = 0;
    EXPECT_EQ(ask(request("POST", "/payments", keyed(key), "10"), at).status, 201);
    return asked.load();
  };
  for (const std::uint16_t at : {port(), other->gate.port()})  // their statements are prepared then
    for (int i = 0; i < 2; ++i) asked_for("k" + std::to_string(at), at);
  EXPECT_EQ(asked_for("replayed-key", port()), 1);
  EXPECT_EQ(asked_for("replayed-key", other->gate.port()), 2);
  EXPECT_EQ(asked_for("replayed-key", other->gate.port()), 1);
  EXPECT_EQ(runs, 3);
}

TEST_F(Contract, AResultIsAnAnswerToo) {
  body = [](const Message& message, Context& context) {
    if (*message.payload() == "json") context.result({{"id", 17}});
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(post("k1", "nothing").status, 204);
    const Reply reply = post("k2", "json");
    EXPECT_EQ(reply.body, R"({"id":17})");
    EXPECT_EQ(reply.header("content-type"), "application/json");
  }
  EXPECT_EQ(runs, 2);
}

TEST_F(Contract, OneKeyIsOneRequest) {
  add_route({"/accounts/{account}/payments", {"POST", "PUT"}});
  const Headers as_json{{"Content-Type", "application/json"}};
  const std::string path = "/accounts/a%31/payments";
  EXPECT_EQ(post("k1", R"({"a":1,"b":2})", as_json, path).status, 201);
  const Reply same =
      post("k1", R"({ "b": 2, "a": 1 })", {{"content-type", "Application/JSON"}}, path);
  EXPECT_EQ(same.header("idempotent-replayed"), "true") << same.body;
  std::vector<Reply> others;
  others.push_back(post("k1", R"({"a":1,"b":3})", as_json, path));
  others.push_back(post("k1", R"({"a":1,"b":2})", as_json, path + "?a=1"));
  others.push_back(post("k1", R"({"a":1,"b":2})", as_json, "/accounts/a2/payments"));
  others.push_back(post("k1", R"({"a":1,"b":2})", as_json, "/payments"));
  others.push_back(post("k1", R"({"a":1,"b":2})", {{"Content-Type", "text/plain"}}, path));
  others.push_back(ask(request("PUT", path, keyed("k1", as_json), R"({"a":1,"b":2})")));
  for (const Reply& reply : others) {
    expect_problem(reply, 422, "key-reused");
    EXPECT_TRUE(has(reply.body, "http-1"));
    EXPECT_FALSE(has(reply.body, "\"id\""));
    EXPECT_EQ(reply.header("location") + reply.header("idempotent-replayed"), "");
  }
  EXPECT_EQ(runs, 1);
}

TEST_F(Contract, AHandlerSeesTheRequest) {
  add_route({"/accounts/{account}/payments"});
  body = [](const Message& message, Context& context) {
    std::string seen(message.topic());
    for (const char* name : {":method", ":path", ":query", ":tenant", ":path.account",
                             "idempotency-key", "x-trace", "authorization"})
      seen += " " + std::string(message.header(name).value_or("-"));
    context.respond(200, {}, seen);
  };
  EXPECT_EQ(post("\"k1\"", "10", {{"X-Trace", "7"}}, "/accounts/a%2Fb/payments?x=1").body,
            "/accounts/{account}/payments POST /accounts/a%2Fb/payments x=1 ann a/b k1 7 -");
}

TEST_F(Contract, ARejectionIsAnAnswerThatStays) {
  body = [](const Message& message, Context& context) {
    book(message, context);
    if (*message.payload() == "own")
      context.respond(409, {{"Content-Type", "text/plain"}}, "taken");
    throw Reject("no such account");
  };
  for (int i = 0; i < 2; ++i) {
    const Reply reply = post("k1");
    expect_problem(reply, 422, "rejected");
    EXPECT_TRUE(has(reply.body, "no such account"));
    EXPECT_EQ(reply.header("idempotent-replayed"), i == 0 ? "" : "true");
    const Reply own = post("k2", "own");
    EXPECT_EQ(own.status, 409);
    EXPECT_EQ(own.body, "taken");
  }
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(database.value("SELECT DISTINCT status FROM hapax.idempotency_keys"), "completed");
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.dead_letters"), 0);
}

TEST_F(Contract, AFailureStoresNothing) {
  body = [](const Message& message, Context& context) {
    book(message, context);
    if (*message.payload() == "retry") throw Retry("later", std::chrono::milliseconds(6500));
    if (*message.payload() == "for ever") throw Retry("later", std::chrono::hours(24 * 366));
    if (*message.payload() == "status") context.respond(500);
    throw std::runtime_error("secret words");
  };
  for (int i = 0; i < 2; ++i) {
    const Reply reply = post("k1");
    expect_problem(reply, 500, "failed");
    EXPECT_EQ(reply.header("retry-after"), "1");
    EXPECT_FALSE(has(reply.body, "secret"));
  }
  const Reply later = post("k1", "retry");
  expect_problem(later, 503, "unavailable");
  EXPECT_EQ(later.header("retry-after"), "7");
  EXPECT_EQ(post("k1", "for ever").header("retry-after"), "31536000");
  EXPECT_EQ(post("k1", "status").status, 500);
  EXPECT_EQ(runs, 5);
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(keys(), 0);
  body = book;
  EXPECT_EQ(post("k1").status, 201);
}

TEST_F(Contract, SerializationFailuresAreRunAgainInPlace) {
  std::atomic<int> failures = 3;
  body = [&](const Message& message, Context& context) {
    book(message, context);
    if (failures-- > 0)
      context.sql("DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$");
  };
  EXPECT_EQ(post("k1").status, 201);
  EXPECT_EQ(runs, 4);
  failures = 1'000'000;
  expect_problem(post("k2"), 503, "unavailable");
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(Contract, ALostAnswerToACommitIsFound) {
  std::atomic<bool> cut = true;
  const auto server = test::postgres().port();
  sandbox::Proxy proxy(
      {"127.0.0.1", std::to_string(server)}, {},
      [&](int, sandbox::Proxy::From from, const std::string& text) {
        const bool commits = from == sandbox::Proxy::From::client && has(text, ";COMMIT");
        return commits && cut.exchange(false) ? sandbox::Proxy::Then::forward_and_cut
                                              : sandbox::Proxy::Then::forward;
      });
  options = test::through_port(options, proxy.port());
  config.gate.lanes = 2;  // with one, a claim waits 50 ms, and the cut session may end later
  config.gate.wait = std::chrono::seconds(10);
  const Reply reply = post("k1");
  EXPECT_FALSE(cut);
  EXPECT_EQ(reply.status, 201) << reply.body;
  EXPECT_EQ(reply.header("idempotent-replayed"), "");
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(Contract, SafeMethodsAreNotGuarded) {
  config.gate.routes[0].methods = {"GET", "POST"};
  body = [](const Message& message, Context& context) {
    if (*message.header(":query") == "write") book(message, context);
    context.respond(200, {}, context.sql("SELECT 'three'")[0][0].text());
  };
  for (int i = 0; i < 2; ++i) {
    const Reply reply = ask(request("GET", "/payments", keyed("k1")));
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, "three");
    EXPECT_EQ(reply.header("idempotency-key-lifetime"), "");
  }
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(ask(request("GET", "/payments?write", keyed("k1"))).status, 500);
  HttpClient client(port());
  client.send(request("HEAD", "/payments", as_ann()) + request("GET", "/payments", as_ann()));
  const Reply head = client.read(false);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("content-length"), "5");
  EXPECT_EQ(client.read().body, "three");
  const Reply allowed = ask(request("OPTIONS", "/payments", as_ann()));
  EXPECT_EQ(allowed.status, 204);
  EXPECT_EQ(allowed.header("allow"), "OPTIONS, GET, HEAD, POST");
  EXPECT_EQ(keys(), 0);
  EXPECT_EQ(effects(), "");
}

TEST_F(Contract, WhatNoRouteTakesIsRefused) {
  config.gate.rules = "https://example.org/rules";
  const Reply reply = post("k1", "10", {}, "/elsewhere");
  expect_problem(reply, 404, "no-route");
  EXPECT_EQ(reply.header("link"), "<https://example.org/rules>; rel=\"describedby\"");
  expect_problem(ask(request("DELETE", "/payments", keyed("k1"))), 405, "method");
  expect_problem(post("k1", "10", {{"Content-Encoding", "gzip"}}), 415, "content-encoding");
  EXPECT_EQ(runs, 0);
}

TEST_F(Contract, NoCacheKeepsAnAnswerUnlessItsHandlerAllowsThat) {
  config.gate.routes[0].methods = {"GET", "POST"};
  add_route({"/prices", {"GET"}});
  body = [](const Message& message, Context& context) {
    if (message.topic() != "/prices") return context.respond(200, {{"ETag", "\"v1\""}}, "1");
    context.respond(200, {{"Cache-Control", "private, max-age=60"}}, "1");
  };
  for (const Reply& reply :
       {ask(request("GET", "/payments", as_ann())), post("k1"), post("k1"),
        ask(request("GET", "/nowhere", as_ann())), ask(request("GET", "/payments", {})),
        ask(request("GET", "/healthz", {}))})
    EXPECT_EQ(reply.header("cache-control"), "no-store") << reply.status << reply.body;
  EXPECT_EQ(ask(request("GET", "/prices", as_ann())).header("cache-control"),
            "private, max-age=60");
}

}  // namespace
}  // namespace hapax::gate
