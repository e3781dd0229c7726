#include "observe/admin_server.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "observe/bounded_http_server.hpp"

namespace hapax::observe {
namespace {

using namespace std::chrono_literals;

AdminAnswers good_answers() {
  return {[] { return std::string("hapax_lanes 16\n"); },
          [] {
            return Verdict{true, {}, {}};
          },
          [] {
            return Verdict{false, {"payments/3: halted: x"}, {{"started", true}}};
          }};
}

httplib::Client client_of(const AdminServer& server) {
  httplib::Client client("127.0.0.1", server.port());
  client.set_read_timeout(10, 0);
  return client;
}

// A connection that sends exactly what the test gives it.
class RawClient {
 public:
  explicit RawClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("connect");
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() { ::close(socket_); }

  int socket() const { return socket_; }
  // The server may have closed already; then nothing is sent.
  void send(const std::string& text) { ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  // Whether the server ended the connection within this time of silence.
  bool ended_within(std::chrono::milliseconds time) {
    pollfd waited{socket_, POLLIN, 0};
    while (::poll(&waited, 1, static_cast<int>(time.count())) > 0)
      if (receive().empty()) return true;
    return false;
  }
  // All that the server sends until it closes.
  std::string answer() {
    std::string all;
    for (std::string part = receive(); !part.empty(); part = receive()) all += part;
    return all;
  }

 private:
  std::string receive() {
    std::array<char, 4096> buffer{};
    const ssize_t got = ::recv(socket_, buffer.data(), buffer.size(), 0);
    return {buffer.data(), got < 0 ? 0 : static_cast<std::size_t>(got)};
  }

  int socket_;
};

std::string listen_error(const std::string& listen) {
  try {
    const AdminServer server(listen, good_answers());
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(AdminServer, ServesMetricsAsPrometheusText) {
  const AdminServer server("127.0.0.1:0", good_answers());
  const auto response = client_of(server).Get("/metrics");
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "hapax_lanes 16\n");
  EXPECT_EQ(response->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
}

TEST(AdminServer, TellsVerdictsByStatusAndReasons) {
  const AdminServer server("127.0.0.1:0", good_answers());
  const auto live = client_of(server).Get("/livez");
  ASSERT_TRUE(live);
  EXPECT_EQ(live->status, 200);
  EXPECT_EQ(nlohmann::json::parse(live->body).at("ok"), true);
  const auto ready = client_of(server).Get("/readyz");
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->status, 503);
  EXPECT_EQ(ready->get_header_value("Content-Type"), "application/json");
  const auto body = nlohmann::json::parse(ready->body);
  EXPECT_EQ(body.at("ok"), false);
  EXPECT_EQ(body.at("reasons").at(0), "payments/3: halted: x");
  EXPECT_EQ(body.at("detail").at("started"), true);
}

TEST(AdminServer, FailsClosedWhenAnAnswerThrows) {
  const AdminServer server(
      "127.0.0.1:0",
      {[]() -> std::string { throw std::runtime_error("m\xff"); }, []() -> Verdict { throw 42; },
       []() -> Verdict { throw std::runtime_error("r"); }});
  for (const char* path : {"/metrics", "/livez", "/readyz"}) {
    const auto response = client_of(server).Get(path);
    ASSERT_TRUE(response) << path;
    EXPECT_EQ(response->status, 503) << path;
    EXPECT_EQ(nlohmann::json::parse(response->body).at("ok"), false) << path;
  }
}

TEST(AdminServer, ListsItsPathsAndKnowsNoOthers) {
  const AdminServer server("127.0.0.1:0", good_answers());
  const auto index = client_of(server).Get("/");
  ASSERT_TRUE(index);
  EXPECT_EQ(index->status, 200);
  for (const char* path : {"/metrics", "/livez", "/readyz"})
    EXPECT_NE(index->body.find(path), std::string::npos);
  EXPECT_EQ(client_of(server).Get("/readyz/x")->status, 404);
  EXPECT_EQ(client_of(server).Post("/readyz", "x", "text/plain")->status, 405);
  const auto head = client_of(server).Head("/readyz");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 503);
}

TEST(AdminServer, TellsWhatToFixIfItCannotListen) {
  const AdminServer first("127.0.0.1:0", good_answers());
  const struct {
    std::string listen, said;
  } cases[] = {
      {"127.0.0.1:" + std::to_string(first.port()), "another process listens there"},
      {"192.0.2.1:9464", "no such address"},  // TEST-NET-1: never this machine's
      {"127.0.0.1", "the port is missing"},
      {":9464", "the host is missing"},
      {"127.0.0.1:http", "not a number from 0 to 65535"},
      {"127.0.0.1:65536", "not a number from 0 to 65535"},
      {"127.0.0.1:", "not a number from 0 to 65535"},
      {"::1:9464", "belongs in brackets"},
      {"no such host.invalid:9464", "is the host's name right"},
  };
  for (const auto& c : cases) {
    const std::string said = listen_error(c.listen);
    EXPECT_NE(said.find(c.said), std::string::npos) << c.listen << ": " << said;
    EXPECT_NE(said.find("\"" + c.listen + "\""), std::string::npos) << said;
  }
}

TEST(AdminServer, FreesItsPortWhenItEnds) {
  std::optional<AdminServer> server(std::in_place, "127.0.0.1:0", good_answers());
  const std::string listen = "127.0.0.1:" + std::to_string(server->port());
  EXPECT_EQ(client_of(*server).Get("/livez")->status, 200);
  server.reset();
  EXPECT_EQ(listen_error(listen), "");
}

TEST(AdminServer, EndsAtOnceThoughClientsAreConnected) {
  std::deque<RawClient> slow;
  std::optional<AdminServer> server(std::in_place, "127.0.0.1:0", good_answers());
  for (int i = 0; i < 12; ++i) slow.emplace_back(server->port()).send("GET /livez HTTP/1.1\r\n");
  const auto before = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 1s);
  for (RawClient& client : slow) EXPECT_TRUE(client.ended_within(1s));
}

TEST(AdminServer, EndsEvenBeforeItHasBegun) {
  for (int i = 0; i < 200; ++i) const AdminServer server("127.0.0.1:0", good_answers());
}

// The time is only a bound: a busy machine may need seconds.
void expect_probes_answered(int port, int probes) {
  for (int probe = 0; probe < probes; ++probe) {
    httplib::Client client("127.0.0.1", port);
    client.set_read_timeout(60, 0);
    const auto response = client.Get("/livez");
    ASSERT_TRUE(response) << "probe " << probe;
    EXPECT_EQ(response->status, 200);
  }
}

// Without deadlines: a client that is held up by another is so for ever.
class PatientServer {
 public:
  PatientServer() {
    thread_ = std::thread([this] { server_.run(); });
  }
  ~PatientServer() {
    server_.stop();
    thread_.join();
  }

  int port() const { return port_; }

 private:
  static void answer(const httplib::Request& request, httplib::Response& response) {
    response.status = 200;
    if (request.path == "/metrics")
      response.set_content(std::string(kMaxUnsentBytes / 2, 'm'), "text/plain");
  }

  BoundedHttpServer server_{answer, {.to_ask = 1h, .to_answer = 1h, .to_take = 1h}};
  int port_ = server_.bind("127.0.0.1", 0);
  std::thread thread_;
};

TEST(AdminServer, AnswersProbesThoughManyClientsDrip) {
  std::deque<RawClient> clients;
  std::vector<std::jthread> drips;
  const PatientServer server;
  for (int i = 0; i < 40; ++i) {
    RawClient& client = clients.emplace_back(server.port());
    client.send("GET /livez HTTP/1.1\r\nA: ");
    drips.emplace_back([&client](const std::stop_token& enough) {
      while (!enough.stop_requested() && !client.ended_within(100ms)) client.send("a");
    });
  }
  expect_probes_answered(server.port(), 20);
}

TEST(AdminServer, AnswersProbesThoughManyClientsDoNotReadTheirAnswers) {
  const PatientServer server;
  std::deque<RawClient> deaf;
  for (int i = 0; i < 12; ++i)
    deaf.emplace_back(server.port()).send("GET /metrics HTTP/1.1\r\n\r\n");
  expect_probes_answered(server.port(), 20);
  EXPECT_LT(deaf.front().answer().size(), kMaxUnsentBytes / 2) << "more is kept than the bound";
}

TEST(AdminServer, EndsTheOldestConnectionsBeyondItsBoundAndNoOther) {
  const AdminServer server("127.0.0.1:0", good_answers());
  std::deque<RawClient> silent;
  for (std::size_t i = 0; i < kMaxConnections + 1; ++i) silent.emplace_back(server.port());
  EXPECT_TRUE(silent.front().ended_within(kConnectionDeadline / 2));
  EXPECT_FALSE(silent[1].ended_within(0ms));
  expect_probes_answered(server.port(), 2 * static_cast<int>(kMaxConnections));
}

TEST(AdminServer, EndsAConnectionThatIsSilentForTooLong) {
  const AdminServer server("127.0.0.1:0", good_answers());
  RawClient client(server.port());
  EXPECT_TRUE(client.ended_within(2 * kConnectionDeadline));
}

TEST(AdminServer, ReadsNoMoreThanItsBoundOfARequest) {
  const AdminServer server("127.0.0.1:0", good_answers());
  RawClient client(server.port());
  client.send("GET /livez HTTP/1.1\r\nA: " + std::string(kMaxRequestBytes, 'a') + "\r\n\r\n");
  EXPECT_EQ(client.answer().find("200 OK"), std::string::npos);
}

TEST(AdminServer, IsNotTalkedIntoMultiplyingItsAnswer) {
  const AdminServer server("127.0.0.1:0", good_answers());
  std::string ranges = "bytes=0-0";
  while (ranges.size() < kMaxRequestBytes - 200) ranges += ",0-9";
  const auto response = client_of(server).Get("/metrics", {{"Range", ranges}});
  ASSERT_TRUE(response);
  EXPECT_EQ(response->body, "hapax_lanes 16\n");
}

TEST(AdminServer, SurvivesHostileRequests) {
  const AdminServer server("127.0.0.1:0", good_answers());
  for (const std::string& request :
       {std::string("\r\n\r\n"), std::string(kMaxRequestBytes, '\0'), std::string("GET\r\n\r\n"),
        std::string("GET /%zz%00 HTTP/1.1\r\n\r\n"), std::string("\xff\xfe\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nRange: bytes=99999999999999999999-\r\n\r\n"),
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" +
            std::string(100, 'x')}) {
    RawClient client(server.port());
    client.send(request);
    client.answer();
  }
  EXPECT_EQ(client_of(server).Get("/livez")->status, 200);
}

}  // namespace
}  // namespace hapax::observe
