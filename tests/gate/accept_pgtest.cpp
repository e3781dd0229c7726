// The contract of routes with "accept" (docs/gate.md), over real sockets: what is put into the
// outbox, and what a client is told.
#include "flow/publisher.hpp"
#include "gate/accept_case.hpp"
#include "key/key_text.hpp"
#include "sandbox/proxy.hpp"
#include "store/message/operations.hpp"

namespace hapax::gate {
namespace {

using Accept = AcceptCase;
using nlohmann::json;

json body_of(const Reply& reply) { return json::parse(reply.body, nullptr, false); }

TEST_F(Accept, ARequestBecomesARecord) {
  const Reply reply = post("k1", R"({"amount": 1.50})",
                           {{"Content-Type", "application/json"},
                            {"Traceparent", "00-aa-bb-01"},
                            {"Cookie", "secret"},
                            {"X-Other", "1"}},
                           "/payments?dry=1");
  EXPECT_EQ(reply.status, 202) << reply.body;
  EXPECT_EQ(body_of(reply), json({{"status", "pending"}}));
  EXPECT_TRUE(reply.header("location").starts_with("/operations/"));
  EXPECT_EQ(reply.header("idempotency-key-lifetime"), "604800");
  EXPECT_EQ(reply.header("idempotency-key-expires"), "");
  EXPECT_EQ(runs, 0);
  const std::string key = record_key("k1");
  EXPECT_EQ(record("group_id, topic, convert_from(record_key, 'UTF8'), convert_from(payload, "
                   "'UTF8'), idempotency_key, source_topic"),
            "bookers|requests|" + key + R"(|{"amount": 1.50}|)" + key + "|/payments");
  EXPECT_EQ(json::parse(record("headers")),
            json::parse(R"([["content-type", "application/json"], [":method", "POST"],
                            [":path", "/payments"], [":query", "dry=1"], [":tenant", "ann"],
                            ["traceparent", "00-aa-bb-01"]])"));
  EXPECT_EQ(expires(), "waits");
}

TEST_F(Accept, ARetryGetsTheSameAnswer) {
  const Reply first = post("k1");
  EXPECT_EQ(first.header("idempotent-replayed"), "");
  for (int i = 0; i < 2; ++i) {
    const Reply again = post("\"k1\"");
    EXPECT_EQ(again.status, 202);
    EXPECT_EQ(again.header("idempotent-replayed"), "true");
    EXPECT_EQ(again.header("location"), first.header("location"));
    EXPECT_EQ(again.header("idempotency-key-expires"), "");
    EXPECT_EQ(again.body, first.body);
    work(book);
  }
  EXPECT_EQ(post("k1", "20").status, 422);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.outbox"), 0);
  EXPECT_EQ(database.count("SELECT count(*) FROM effects"), 1);
}

TEST_F(Accept, WhatAHandlerAnsweredBeforeStaysItsAnswer) {
  const config::GateConfig accepting = config;
  config.base.routes.front().handler = "booker";
  config.gate.routes.front().accept.reset();
  const auto before = make_gate();
  const std::string text = request("POST", "/payments", keyed("k1"), "10");
  EXPECT_EQ(ask(text, before->gate.port()).header("location"), "/payments/17");
  config = accepting;
  const Reply again = post("k1");
  EXPECT_EQ(again.header("idempotent-replayed"), "true");
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.header("location"), "/payments/17");
}

TEST_F(Accept, TheSameKeyOfTwoCallersIsTwoOperations) {
  const Reply ann = post("k1");
  const Reply bob = ask(request("POST", "/payments", as_bob({{"Idempotency-Key", "k1"}}), "10"));
  EXPECT_EQ(bob.status, 202);
  EXPECT_EQ(bob.header("idempotent-replayed"), "");
  EXPECT_NE(ann.header("location"), bob.header("location"));
  EXPECT_EQ(database.count("SELECT count(DISTINCT idempotency_key) FROM hapax.outbox"), 2);
}

TEST_F(Accept, TheResultOfTheWorkerIsShown) {
  const std::string at = post("k1").header("location");
  Reply reply = look(at);
  EXPECT_EQ(reply.status, 202);
  EXPECT_EQ(reply.header("retry-after"), "1");
  EXPECT_EQ(reply.header("cache-control"), "no-store");
  EXPECT_EQ(body_of(reply), json({{"status", "pending"}}));
  work([](const Message& message, Context& context) {
    book(message, context);
    context.respond(201, {{"Content-Type", "application/json"}, {"Location", "/payments/17"}},
                    R"({"amount":1.50,"id":12345678901234567890123})");
  });
  for (int i = 0; i < 2; ++i) {
    reply = look(at);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.header("content-type"), "application/json");
    EXPECT_EQ(reply.body,
              R"({"status":"completed","response":{"status":201,"headers":{"Content-Type":)"
              R"("application/json","Location":"/payments/17"},"body":{"amount":1.50,"id":)"
              R"(12345678901234567890123}}})"
              "\n");
  }
  HttpClient client(port());
  client.send(request("HEAD", at, as_ann()));
  EXPECT_EQ(client.read(false).status, 200);
}

TEST_F(Accept, AResultOfAnyKindIsShown) {
  const auto shown = [&](const std::string& key, const Body& with) {
    const std::string at = post(key).header("location");
    work(with);
    return body_of(look(at)).value("response", json());
  };
  EXPECT_EQ(shown("nothing", [](const Message&, Context&) {}),
            json::parse(R"({"status": 204, "headers": {}})"));
  EXPECT_EQ(shown("result",
                  [](const Message&, Context& context) {
                    context.result({{"id", 1}});
                  }),
            json::parse(R"({"status": 200, "headers": {"Content-Type": "application/json"},
                            "body": {"id": 1}})"));
  EXPECT_EQ(shown("text",
                  [](const Message&, Context& context) {
                    context.respond(409, {{"content-type", "application/json"}}, "{\"open\":");
                  })
                .value("body", ""),
            "{\"open\":");
  EXPECT_EQ(
      shown("bytes", [](const Message&,
                        Context& context) { context.respond(200, {}, std::string("\xFF\x00", 2)); })
          .value("body_hex", ""),
      "ff00");
}

TEST_F(Accept, WhatAWorkerGivesUpOnIsFinal) {
  const std::string rejected = post("k1").header("location");
  EXPECT_EQ(work([](const Message&, Context&) { throw Reject("no such account"); }).result,
            flow::Result::failed);
  const Reply reply = look(rejected);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(body_of(reply), json::parse(R"({"status": "failed", "problem": {
      "type": "urn:hapax:gate:rejected", "title": "The request was refused", "status": 422,
      "detail": "no such account"}})"));
  const std::string failed = post("k2").header("location");
  EXPECT_EQ(work([](const Message&, Context&) { throw std::runtime_error("secret words"); }).reason,
            "attempts_exhausted");
  const json shown = body_of(look(failed));
  EXPECT_EQ(shown.value("status", ""), "failed");
  EXPECT_EQ(shown["problem"].value("type", ""), "urn:hapax:gate:failed") << shown;
  EXPECT_EQ(shown.dump().find("secret"), std::string::npos) << shown;
}

TEST_F(Accept, OnlyItsCallerSeesAnOperation) {
  const std::string at = post("k1").header("location");
  work(book);
  EXPECT_EQ(ask(request("GET", at, {})).status, 401);
  const Reply bob = ask(request("GET", at, as_bob()));
  EXPECT_EQ(bob.status, 404);
  config.gate.operations_key = std::string(64, 'x');
  const auto other_key = make_gate();
  config.gate.operations_key = std::string(64, 'k');
  config.gate.scope = "other";
  const auto other_scope = make_gate();
  std::vector<Reply> forged;
  forged.push_back(ask(request("GET", at, as_ann()), other_key->gate.port()));
  forged.push_back(ask(request("GET", at, as_ann()), other_scope->gate.port()));
  std::string flipped = at;
  flipped[20] = flipped[20] == 'A' ? 'B' : 'A';
  for (const std::string& id :
       {flipped, at.substr(0, at.size() - 1), at + "A", at + "=", std::string("/operations/k1"),
        std::string("/operations/AAAA"), "/operations/" + std::string(3000, 'A')})
    forged.push_back(look(id));
  for (const Reply& reply : forged) {
    EXPECT_EQ(reply.status, 404);
    EXPECT_EQ(reply.body, bob.body);
    EXPECT_EQ(reply.headers.size(), bob.headers.size());
  }
  EXPECT_EQ(look(at).status, 200);
  EXPECT_EQ(ask(request("POST", at, keyed("k9"), "10")).status, 405);
}

TEST_F(Accept, AWorkerMayKnowTheTenant) {
  worker_route.key.tenant = key::Source{key::Source::Kind::header, {":tenant"}};
  const std::string at = post("k1").header("location");
  work(book);
  EXPECT_EQ(database.value("SELECT tenant FROM hapax.idempotency_keys WHERE scope = 'booking'"),
            "ann");
  EXPECT_EQ(look(at).status, 200);
}

TEST_F(Accept, RecordsKeepTheOrderOfAMemberOfTheBody) {
  add_accepting("/accounts/{account}/payments", {"requests", "booking", "", ":path.account"});
  config.gate.routes[1].accept->key_pointer = "/account";
  EXPECT_EQ(post("k1", R"({"account": "a"})").status, 202);
  EXPECT_EQ(post("k2", R"({"account": 17.10})").status, 202);
  EXPECT_EQ(post("k3", "{}", {}, "/accounts/b/payments").status, 202);
  EXPECT_EQ(record("convert_from(record_key, 'UTF8')"), "a\n17.1\nb");
  for (int i = 0; i < 2; ++i) {
    const Reply reply = post("k4", "{}");
    EXPECT_EQ(reply.status, 422);
    EXPECT_EQ(body_of(reply).value("type", ""), "urn:hapax:gate:rejected");
    EXPECT_EQ(reply.header("idempotent-replayed"), i == 0 ? "" : "true");
    EXPECT_NE(reply.header("idempotency-key-expires"), "");
  }
}

TEST_F(Accept, ARequestThatTheTopicDoesNotTakeIsRefused) {
  largest = 3000;
  const Reply reply = post("k1", std::string(3000, 'x'));
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(body_of(reply).value("type", ""), "urn:hapax:gate:body-too-large");
  EXPECT_EQ(reply.body.find("max.message.bytes"), std::string::npos);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.outbox"), 0);
  EXPECT_EQ(post("k2").status, 202);
}

TEST_F(Accept, A202MeansThatTheRecordIsStored) {
  std::atomic<int> cuts = 0;
  std::atomic<bool> forward = false;
  const auto server = test::postgres().port();
  sandbox::Proxy proxy({"127.0.0.1", std::to_string(server)}, {},
                       [&](int, sandbox::Proxy::From from, const std::string& text) {
                         using Then = sandbox::Proxy::Then;
                         const bool commits = from == sandbox::Proxy::From::client &&
                                              text.find(";COMMIT") != std::string::npos;
                         if (!commits || cuts-- <= 0) return Then::forward;
                         return forward ? Then::forward_and_cut : Then::cut;
                       });
  options = test::through_port(options, proxy.port());
  config.gate.lanes = 2;  // with one, a claim waits 50 ms, and the cut session may end later
  config.gate.wait = std::chrono::seconds(10);
  const auto running = make_gate();
  const std::string text = request("POST", "/payments", keyed("k1"), "10");
  cuts = 1000;
  EXPECT_EQ(ask(text, running->gate.port()).status, 503);
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.outbox"), 0);
  EXPECT_EQ(keys(), 0);
  forward = true;
  cuts = 1;
  EXPECT_EQ(ask(text, running->gate.port()).status, 202);
  cuts = 0;
  EXPECT_EQ(database.count("SELECT count(*) FROM hapax.outbox"), 1);
  EXPECT_EQ(ask(text, running->gate.port()).header("idempotent-replayed"), "true");
}

TEST_F(Accept, HandlersOfTheGateMayPublish) {
  add_route({"/direct"});
  std::swap(config.gate.routes.back(), config.gate.routes[config.gate.routes.size() - 2]);
  std::swap(config.base.routes.back(), config.base.routes[config.base.routes.size() - 2]);
  body = [](const Message& message, Context& context) {
    book(message, context);
    context.publish("requests", {.payload = "told", .name = "told"});
  };
  EXPECT_EQ(post("k1", "10", {}, "/direct").status, 201);
  EXPECT_EQ(record("group_id, topic, convert_from(payload, 'UTF8')"), "bookers|requests|told");
}

TEST_F(Accept, OperationsArePagedInEachStyleOfDates) {
  post("k1");
  post("k2");
  database.run("ALTER DATABASE " + database.name() +
               " SET timezone TO 'Asia/Shanghai'; ALTER DATABASE " + database.name() +
               " SET datestyle TO 'SQL, DMY'");
  store::Session session(options);
  const auto page = [&](const store::WaitingOperation& after) {
    return store::list_waiting_operations(session, config.gate.scope, {config.gate.routes[0].path},
                                          after, 1);
  };
  const auto first = page({});
  ASSERT_EQ(first.size(), 1U);
  const auto second = page(first[0]);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_NE(second[0].key, first[0].key);
}

}  // namespace
}  // namespace hapax::gate
