// What strangers send: bytes that are no request, too many of them, or too few.
#include <optional>
#include <thread>

#include "gate/gate_case.hpp"

namespace hapax::gate {
namespace {

using Http = GateCase;

const std::string kLine = "POST /payments HTTP/1.1\r\nHost: gate\r\n";
const std::string kCaller = "Authorization: Bearer token-of-ann\r\nIdempotency-Key: k1\r\n";
// If its bytes were taken for a request, this one would take effect.
const std::string kSmuggled =
    "POST /payments HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer token-of-ann\r\n"
    "Idempotency-Key: smuggled\r\nContent-Length: 2\r\n\r\n10";

TEST_F(Http, WhatTwoServersCouldReadDifferentlyIsRefused) {
  const std::vector<std::string> heads = {
      kLine + kCaller + "Content-Length: 2\r\nContent-Length: 2\r\n",
      kLine + kCaller + "Content-Length: 2\r\nContent-Length: 90\r\n",
      kLine + kCaller + "Content-Length: 2, 2\r\n",
      kLine + kCaller + "Content-Length: +2\r\n",
      kLine + kCaller + "Content-Length: 0x2\r\n",
      kLine + kCaller + "Content-Length: 99999999999999999999\r\n",
      kLine + kCaller + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
      kLine + kCaller + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
      kLine + kCaller + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
      kLine + kCaller + "Transfer-Encoding: identity, chunked\r\n",
      kLine + kCaller + "Transfer-Encoding: xchunked\r\n",
      kLine + kCaller + "Transfer-Encoding : chunked\r\n",
      kLine + kCaller + "X\x01: 1\r\nContent-Length: 2\r\n",
      kLine + kCaller + std::string("X: a\0b\r\nContent-Length: 2\r\n", 28),
      kLine + "Host: other\r\n" + kCaller + "Content-Length: 2\r\n",
      "POST /payments HTTP/1.1\r\n" + kCaller + "Content-Length: 2\r\n",
      "POST /payments HTTP/1.0\r\n" + kCaller + "Transfer-Encoding: chunked\r\n",
      "POST /payments HTTP/2.0\r\nHost: gate\r\n" + kCaller + "Content-Length: 2\r\n",
      "POST payments HTTP/1.1\r\nHost: gate\r\n" + kCaller + "Content-Length: 2\r\n",
      "POST /pay\xC3\xA9 HTTP/1.1\r\nHost: gate\r\n" + kCaller + "Content-Length: 2\r\n",
      "POST  /payments HTTP/1.1\r\nHost: gate\r\n" + kCaller + "Content-Length: 2\r\n",
      "\x16\x03\x01\x02\r\n",
  };
  for (const std::string& head : heads) {
    HttpClient client(port());
    client.send(head + "\r\n10" + kSmuggled);
    const Reply reply = client.read();
    EXPECT_EQ(reply.status, 400) << head << reply.body;
    EXPECT_EQ(reply.header("connection"), "close");
    EXPECT_TRUE(client.ends()) << head;
  }
  EXPECT_EQ(runs, 0);
}

TEST_F(Http, HeadersAreBounded) {
  EXPECT_EQ(post("k1", "10", {{"X", std::string(1 << 20, 'x')}}).status, 431);
  EXPECT_EQ(post("k1", "10", Headers(10'000, {"X", "1"})).status, 431);
  EXPECT_EQ(post("k1", "10", Headers(101, {"X", "1"})).status, 431);
  EXPECT_EQ(ask(request("POST", "/" + std::string(1 << 20, 'x'), keyed("k1"), "10")).status, 431);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(post("k1", "10", Headers(90, {"X", "1"})).status, 201);
}

TEST_F(Http, BodiesAreBounded) {
  config.gate.limits.body_bytes = 1000;
  config.gate.limits.bodies_bytes = 1500;
  // Refused before a byte of it is there.
  EXPECT_EQ(ask(kLine + kCaller + "Content-Length: 1001\r\n\r\n").status, 413);
  HttpClient endless(port());
  endless.send(kLine + kCaller + "Transfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 20; ++i) endless.send("64\r\n" + std::string(100, 'x') + "\r\n");
  EXPECT_EQ(endless.read().status, 413);
  EXPECT_TRUE(endless.ends());
  EXPECT_EQ(post("k1", std::string(1000, 'x')).status, 201);
  // What was only announced takes no room from others. What has come does.
  Reply reply;
  std::optional<HttpClient> slow;
  for (int n = 0; n < 100 && reply.status != 503; ++n) {  // it makes room after a second
    slow.emplace(port());
    slow->send(kLine + kCaller + "Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n");
    EXPECT_EQ(slow->read().status, 100);
    EXPECT_EQ(post("k3", std::string(1000, 'x')).status, 201);
    slow->send(std::string(600, 'x'));
    for (int i = 0; i < 10 && reply.status != 503; ++i) reply = post("k2", std::string(1000, 'x'));
  }
  EXPECT_EQ(reply.status, 503);
  slow->send(std::string(400, 'x'));
  EXPECT_EQ(slow->read().status, 201);
}

TEST_F(Http, BodiesMayComeInChunks) {
  HttpClient client(port());
  client.send(kLine + kCaller + "Transfer-Encoding: Chunked\r\n\r\n1\r\n1\r\n");
  client.send("1;extension=1\r\n0\r\n0\r\nIdempotency-Key: k2\r\nX: 1\r\n\r\n");
  EXPECT_EQ(client.read().status, 201);
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(post("k1").header("idempotent-replayed"), "true");
}

TEST_F(Http, AClientThatAsksFirstIsToldToGoOn) {
  HttpClient client(port());
  const std::string head = kLine + "Expect: 100-continue\r\nContent-Length: 2\r\n";
  client.send(head + kCaller + "\r\n");
  EXPECT_EQ(client.read().status, 100);
  client.send("10");
  EXPECT_EQ(client.read().status, 201);
  // Or not to, and then it sends no body.
  client.send(head + "\r\n");
  EXPECT_EQ(client.read().status, 401);
  EXPECT_TRUE(client.ends());
  EXPECT_EQ(ask(kLine + kCaller + "Expect: miracles\r\nContent-Length: 2\r\n\r\n10").status, 417);
}

TEST_F(Http, ConnectionsAreKeptAndRequestsFollowEachOther) {
  config.gate.limits.requests = 4;
  HttpClient client(port());
  client.send(request("POST", "/payments", keyed("k1"), "10") +
              request("POST", "/payments", keyed("k2"), "10") +
              request("POST", "/nowhere", keyed("k3")) +
              request("POST", "/payments", keyed("k4"), "10") + kSmuggled);
  EXPECT_EQ(client.read().status, 201);
  EXPECT_EQ(client.read().status, 201);
  EXPECT_EQ(client.read().status, 404);
  const Reply last = client.read();
  EXPECT_EQ(last.status, 201);
  EXPECT_EQ(last.header("connection"), "close");
  EXPECT_TRUE(client.ends());
  EXPECT_EQ(effects(), "k1=10 k2=10 k4=10");
  HttpClient old(port());
  old.send("POST /payments HTTP/1.0\r\n" + kCaller + "Content-Length: 2\r\n\r\n10");
  EXPECT_EQ(old.read().header("idempotent-replayed"), "true");
  EXPECT_TRUE(old.ends());
}

TEST_F(Http, WhoIsSlowIsCutOff) {
  config.gate.limits.header_time = std::chrono::milliseconds(200);
  config.gate.limits.body_time = std::chrono::milliseconds(200);
  config.gate.limits.idle_time = std::chrono::milliseconds(200);
  const std::string head = kLine + kCaller + "Content-Length: 1000\r\n";
  for (const std::string& beginning : {std::string(), kLine, head + "\r\n"}) {
    HttpClient client(port());
    client.send(beginning);
    // A byte now and then changes nothing.
    bool open = true;
    for (int i = 0; open && !beginning.empty() && i < 200; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      open = client.send("x");
    }
    EXPECT_TRUE(client.ends()) << beginning;
  }
  EXPECT_EQ(runs, 0);
}

TEST_F(Http, WhoHasSentAllMayCloseHisHalf) {
  HttpClient client(port());
  client.send(request("POST", "/payments", keyed("k1"), "10"));
  client.half_close();
  EXPECT_EQ(client.read().status, 201);
  EXPECT_TRUE(client.ends());
  HttpClient cut(port());
  cut.send(kLine + kCaller + "Content-Length: 3\r\n\r\n10");
  cut.half_close();
  EXPECT_NE(cut.read().status, 201);
  EXPECT_TRUE(cut.ends());
  EXPECT_EQ(runs, 1);
}

TEST_F(Http, AClientThatGoesAwayFindsItsAnswerLater) {
  Door door;
  body = [&](const Message& message, Context& context) {
    door.pass();
    book(message, context);
  };
  {
    HttpClient gone(port());
    gone.send(request("POST", "/payments", keyed("k1"), "10"));
    door.await_waiting(1);
  }
  door.open();
  EXPECT_EQ(post("k1").header("idempotent-replayed"), "true");
  EXPECT_EQ(runs, 1);
}

TEST_F(Http, IdleConnectionsMakeRoomForNewOnes) {
  config.gate.limits.connections = 100;
  std::vector<std::unique_ptr<HttpClient>> idle;
  for (int i = 0; i < 300; ++i) idle.push_back(std::make_unique<HttpClient>(port()));
  EXPECT_EQ(post("k1").status, 201);
  EXPECT_TRUE(idle.front()->ends());
  idle.back()->send(request("POST", "/payments", keyed("k1"), "10"));
  EXPECT_EQ(idle.back()->read().status, 201);
}

TEST_F(Http, AHandlerIsToldTheKeyAndWhoCalls) {
  config.gate.routes[0].methods = {"GET", "POST"};
  body = [](const Message&, Context& context) {
    context.respond(200, {}, std::string(context.key()) + " of " + std::string(context.tenant()));
  };
  EXPECT_EQ(post("k1").body, "k1 of ann");
  EXPECT_EQ(ask(request("GET", "/payments", as_ann())).body, " of ");
}

}  // namespace
}  // namespace hapax::gate
