// A server whose answers may take long: none holds up another, and a request has a size before it
// is parsed.
#include "observe/page_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <vector>

#include "gate/http_client.hpp"
#include "observe/bounded_http_server.hpp"
#include "observe/request_size.hpp"

namespace hapax::observe {
namespace {

std::uint16_t port_of(const PageServer& server) {
  return static_cast<std::uint16_t>(server.port());
}

TEST(PageServer, GivesTheRequestWholeAndTheAnswerWhole) {
  PageRequest seen;
  const PageServer server("127.0.0.1", 0, [&](const PageRequest& request) {
    seen = request;
    return PageAnswer{201, "text/plain", std::string("a\0b", 3), {{"X-One", "1"}}};
  });
  gate::HttpClient client(port_of(server));
  client.send(
      "POST /a%20b?x=1+2&y=%26 HTTP/1.1\r\nHost: h\r\nCOOKIE: c\r\nContent-Length: 3\r\n\r\n");
  client.send(std::string("\0{}", 3));
  const gate::Reply reply = client.read();
  EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(reply.body, std::string("a\0b", 3));
  EXPECT_EQ(reply.header("x-one"), "1");
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path, "/a b");
  EXPECT_EQ(seen.query, (std::map<std::string, std::string>{{"x", "1 2"}, {"y", "&"}}));
  EXPECT_EQ(seen.header("cookie"), "c");
  EXPECT_EQ(seen.header("none"), "");
  EXPECT_EQ(seen.body, std::string("\0{}", 3));
}

TEST(PageServer, AHeaderThatComesTwiceIsNone) {
  std::string seen = "?";
  const PageServer server("127.0.0.1", 0, [&](const PageRequest& request) {
    seen = request.header("host");
    return PageAnswer{};
  });
  gate::HttpClient client(port_of(server));
  client.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
  client.read();
  EXPECT_EQ(seen, "");
}

TEST(PageServer, AnswersWhileOtherAnswersAreBeingMade) {
  std::latch open(1);
  const PageServer server("127.0.0.1", 0, [&](const PageRequest& request) {
    if (request.path == "/slow") open.wait();
    return PageAnswer{200, "text/plain", request.path};
  });
  std::vector<std::unique_ptr<gate::HttpClient>> slow;
  for (std::size_t i = 0; i + 1 < PageServer::kThreads; ++i) {
    slow.push_back(std::make_unique<gate::HttpClient>(port_of(server)));
    slow.back()->send("GET /slow HTTP/1.1\r\n\r\n");
  }
  gate::HttpClient quick(port_of(server));
  quick.send("GET /quick HTTP/1.1\r\n\r\n");
  EXPECT_EQ(quick.read().body, "/quick");
  open.count_down();
  for (const auto& client : slow) EXPECT_EQ(client->read().body, "/slow");
}

// A browser tab that is closed must not keep its answer, nor the server.
TEST(PageServer, DropsTheAnswerOfAClientThatHasGone) {
  std::latch begun(1), open(1);
  const PageServer server("127.0.0.1", 0, [&](const PageRequest& request) {
    if (request.path == "/slow") {
      begun.count_down();
      open.wait();
    }
    return PageAnswer{200, "text/plain", request.path};
  });
  {
    gate::HttpClient gone(port_of(server));
    gone.send("GET /slow HTTP/1.1\r\n\r\n");
    begun.wait();
  }
  open.count_down();
  gate::HttpClient next(port_of(server));
  next.send("GET /next HTTP/1.1\r\n\r\n");
  EXPECT_EQ(next.read().body, "/next");
}

// A: an order is being carried out, and many clients connect. The operator must hear of it.
TEST(PageServer, ManyNewClientsEndNoConnectionWhoseAnswerIsBeingMade) {
  std::latch begun(1), open(1);
  const PageServer server("127.0.0.1", 0, [&](const PageRequest& request) {
    begun.count_down();
    open.wait();
    return PageAnswer{200, "text/plain", request.path};
  });
  gate::HttpClient order(port_of(server));
  order.send("GET /order HTTP/1.1\r\n\r\n");
  begun.wait();
  std::vector<std::unique_ptr<gate::HttpClient>> silent;
  for (std::size_t i = 0; i < kMaxConnections; ++i)
    silent.push_back(std::make_unique<gate::HttpClient>(port_of(server)));
  EXPECT_TRUE(silent.front()->ends());
  open.count_down();
  EXPECT_EQ(order.read().body, "/order");
}

// More than the bound: those that are not accepted yet wait, and the server does not spin or end.
// Nor does a new connection end one whose answer has just been made: that needs rounds to see.
TEST(PageServer, AnswersAllThoughMoreAskThanItsConnections) {
  for (int round = 0; round < 100; ++round) {
    std::latch open(1);
    const PageServer server("127.0.0.1", 0, [&](const PageRequest& request) {
      open.wait();
      return PageAnswer{200, "text/plain", request.path};
    });
    std::vector<std::unique_ptr<gate::HttpClient>> clients;
    for (std::size_t i = 0; i < kMaxConnections + 8; ++i) {
      clients.push_back(std::make_unique<gate::HttpClient>(port_of(server)));
      clients.back()->send("GET /" + std::to_string(i) + " HTTP/1.1\r\n\r\n");
    }
    open.count_down();
    for (std::size_t i = 0; i < clients.size(); ++i)
      ASSERT_EQ(clients[i]->read().body, "/" + std::to_string(i)) << "round " << round;
  }
}

// An order that waits for a thread, and whose tab was closed, must not be carried out later.
TEST(PageServer, DropsTheRequestThatWaitsOfAClientThatHasGone) {
  std::latch begun(PageServer::kThreads), open(1);
  std::atomic<int> waiting = 0;
  const PageServer server("127.0.0.1", 0, [&](const PageRequest& request) {
    if (request.path == "/slow") {
      begun.count_down();
      open.wait();
    }
    if (request.path == "/waiting") ++waiting;
    return PageAnswer{200, "text/plain", request.path};
  });
  std::vector<std::unique_ptr<gate::HttpClient>> slow;
  for (std::size_t i = 0; i < PageServer::kThreads; ++i) {
    slow.push_back(std::make_unique<gate::HttpClient>(port_of(server)));
    slow.back()->send("GET /slow HTTP/1.1\r\n\r\n");
  }
  begun.wait();
  {
    gate::HttpClient gone(port_of(server));
    gone.send("GET /waiting HTTP/1.1\r\n\r\n");
  }
  // These need no thread. Once the second is answered, the loop has seen that `gone` has gone.
  for (int i = 0; i < 2; ++i) {
    gate::HttpClient refused(port_of(server));
    refused.send("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n");
    EXPECT_EQ(refused.read().status, 400);
  }
  open.count_down();
  for (const auto& client : slow) EXPECT_EQ(client->read().body, "/slow");
  gate::HttpClient last(port_of(server));
  last.send("GET /last HTTP/1.1\r\n\r\n");
  EXPECT_EQ(last.read().body, "/last");
  EXPECT_EQ(waiting, 0);
}

TEST(PageServer, TellsWhyItCannotListen) {
  const PageServer first("127.0.0.1", 0, [](const PageRequest&) { return PageAnswer{}; });
  try {
    const PageServer second("127.0.0.1", first.port(),
                            [](const PageRequest&) { return PageAnswer{}; });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("Address already in use"), std::string::npos)
        << error.what();
  }
}

std::string refusal_of(const std::string& request) {
  const RequestSize size = size_of(request, 64, 8);
  EXPECT_FALSE(size.whole);
  return size.refusal.substr(0, 12);
}

TEST(RequestSize, IsWholeWithAllOfItsBody) {
  EXPECT_TRUE(size_of("GET / HTTP/1.1\r\n\r\n", 64, 8).whole);
  EXPECT_FALSE(size_of("GET / HTTP/1.1\r\n", 64, 8).whole);
  EXPECT_FALSE(size_of("POST / HTTP/1.1\r\ncontent-LENGTH:\t3 \r\n\r\nab", 64, 8).whole);
  EXPECT_TRUE(size_of("POST / HTTP/1.1\r\ncontent-LENGTH:\t3 \r\n\r\nabc", 64, 8).whole);
  EXPECT_TRUE(size_of("POST / HTTP/1.1\r\nContent-Length: 99\r\n\r\n", 64, 0).whole);
}

TEST(RequestSize, RefusesWhatHasNoSizeOrTooMuchOfIt) {
  const std::string post = "POST / HTTP/1.1\r\n";
  EXPECT_EQ(refusal_of(post + "Content-Length: 9\r\n\r\n"), "HTTP/1.1 413");
  EXPECT_EQ(refusal_of(post + "Transfer-Encoding: gzip\r\n\r\n"), "HTTP/1.1 411");
  EXPECT_EQ(refusal_of(post + "Content-Length: -1\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(refusal_of(post + "Content-Length:\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(refusal_of(post + "Content-Length: 99999999999999999999\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(refusal_of(post + "Content-Length: 1\r\n\r\nab"), "HTTP/1.1 400");
  EXPECT_EQ(refusal_of(post + std::string(64, 'a')), "HTTP/1.1 431");
  EXPECT_EQ(refusal_of(post + std::string(64, 'a') + "\r\n\r\n"), "HTTP/1.1 431");
}

}  // namespace
}  // namespace hapax::observe
