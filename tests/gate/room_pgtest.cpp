// Who has to go if there are more connections than gate.limits.connections, or no files for them.
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

#include "gate/gate_case.hpp"

namespace hapax::gate {
namespace {

class Room : public GateCase {
 protected:
  using Clients = std::vector<std::unique_ptr<HttpClient>>;

  Room() {
    config.gate.limits.connections = 2;
    config.gate.limits.header_time = config.gate.limits.body_time = std::chrono::minutes(10);
  }

  // A new connection each time, because one that is a second old makes room. `meanwhile`: before
  // each.
  bool is_served_at_last(const std::string& key, const std::function<void()>& meanwhile = {}) {
    for (int i = 0; i < 500; ++i) {
      if (meanwhile) meanwhile();
      if (post(key).status == 201) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

  // The gate asks for the body once it waits for it.
  static Headers expecting(const std::pair<std::string, std::string>& framing) {
    return {framing, {"Expect", "100-continue"}};
  }

  Clients two_that_send(const std::string& text) {
    Clients clients;
    for (int i = 0; i < 2; ++i) {
      clients.push_back(std::make_unique<HttpClient>(port()));
      clients.back()->send(text);
    }
    return clients;
  }
};

TEST_F(Room, WhoIsSlowWithAFirstHeaderMakesRoom) {
  HttpClient served(port());
  served.send(request("POST", "/payments", keyed("k1"), "10"));
  EXPECT_EQ(served.read().status, 201);
  HttpClient slow(port());
  slow.send("POST /payments HTTP/1.1\r\n");
  std::this_thread::sleep_for(std::chrono::seconds(3));  // it is slow from then on
  EXPECT_EQ(post("k2").status, 201);
  EXPECT_TRUE(slow.ends());
  served.send(request("POST", "/payments", keyed("k3"), "10"));
  EXPECT_EQ(served.read().status, 201);
}

// Each has been answered once, without a token. Its next header begins in the same packet, so that
// its connection is never idle.
TEST_F(Room, WhoIsSlowWithALaterHeaderMakesRoom) {
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (int i = 0; i < 2; ++i) {
    slow.push_back(std::make_unique<HttpClient>(port()));
    slow.back()->send(request("GET", "/healthz", {}) + "G");
    EXPECT_EQ(slow.back()->read().status, 200);
  }
  EXPECT_TRUE(is_served_at_last("k1"));  // a header that has begun a moment ago makes no room
}

TEST_F(Room, WhoAnnouncesABodyAndSendsNoneMakesRoom) {
  const auto silent = two_that_send(
      request("POST", "/payments", keyed("k1", expecting({"Content-Length", "1000"}))));
  for (const auto& client : silent) EXPECT_EQ(client->read().status, 100);
  EXPECT_TRUE(is_served_at_last("k2"));
  EXPECT_TRUE(silent[0]->ends());
}

TEST_F(Room, WhoStopsBeforeTheEndOfABodyMakesRoomForOthersBodies) {
  config.gate.limits.connections = 100;
  config.gate.limits.body_bytes = config.gate.limits.bodies_bytes = 60'000;
  const std::string whole(60'000, ' ');
  HttpClient silent(port());
  silent.send(request("POST", "/payments", keyed("k1"), whole).substr(0, 59'000));
  await_metric(gate(), "hapax_gate_connections", "1");
  int status = 0;
  for (int i = 0; i < 500 && status != 201; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    status = post("k2", "10" + whole.substr(2)).status;
  }
  EXPECT_EQ(status, 201);
  EXPECT_TRUE(silent.ends());
}

// It began before the silent one, and has sent for longer than a second.
TEST_F(Room, WhoSendsABodySteadilyStays) {
  config.gate.limits.body_bytes = std::size_t{8} << 20;
  HttpClient steady(port()), silent(port());
  for (HttpClient* const client : {&steady, &silent}) {
    client->send(request(
        "POST", "/payments",
        keyed(client == &steady ? "k1" : "k2", expecting({"Transfer-Encoding", "chunked"}))));
    EXPECT_EQ(client->read().status, 100);
  }
  EXPECT_TRUE(is_served_at_last(
      "k3", [&] { steady.send("2000\r\n" + std::string(0x2000, ' ') + "\r\n"); }));
  EXPECT_TRUE(silent.ends());
  steady.send("2\r\n10\r\n0\r\n\r\n");
  EXPECT_EQ(steady.read().status, 201);
}

TEST_F(Room, WhoDoesNotReadAnAnswerMakesRoom) {
  config.gate.routes[0].methods = {"GET", "POST"};
  config.base.routes[0].max_result_bytes = std::size_t{64} << 20;
  body = [](const Message& message, Context& context) {
    if (message.header(":method") == "POST") return book(message, context);
    context.respond(200, {}, std::string(std::size_t{32} << 20, 'x'));
  };
  const auto deaf = two_that_send(request("GET", "/payments", as_ann()));
  await_metric(gate(), R"(hapax_gate_requests_total{outcome="unguarded",route="/payments"})", "2");
  EXPECT_TRUE(is_served_at_last("k1"));
}

// No caller is known, so their bodies are not read. The gate waits for a while until they close.
TEST_F(Room, WhoHasTheLastAnswerMakesRoom) {
  const auto refused = two_that_send(request("POST", "/payments", {{"Content-Length", "1"}}));
  for (const auto& client : refused) {
    EXPECT_EQ(client->read().status, 401);
    EXPECT_TRUE(client->ends());
  }
  EXPECT_EQ(post("k1").status, 201);
}

// As if handlers and libraries had all files but one, which the client takes.
class NoFiles {
 public:
  NoFiles() {
    for (int i = 0; i < 200; ++i) taken_.push_back(::dup(STDIN_FILENO));
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(taken_.back()) + 1;
    ::setrlimit(RLIMIT_NOFILE, &few);
    ::close(taken_.back());
    taken_.pop_back();
  }
  ~NoFiles() {
    ::setrlimit(RLIMIT_NOFILE, &before_);
    for (const int file : taken_) ::close(file);
  }
  NoFiles(const NoFiles&) = delete;
  NoFiles& operator=(const NoFiles&) = delete;

 private:
  std::vector<int> taken_;
  rlimit before_{};
};

TEST_F(Room, WithoutAFileAnIdleConnectionMakesRoom) {
  config.gate.limits.connections = 100;
  config.gate.limits.idle_time = std::chrono::minutes(10);
  EXPECT_EQ(post("k1").status, 201);  // all that opens files at the start has them
  await_metric(gate(), "hapax_gate_connections", "0");
  HttpClient longest(port()), idle(port());
  await_metric(gate(), "hapax_gate_connections", "2");
  const NoFiles no_files;
  EXPECT_EQ(ask(request("GET", "/healthz", {})).status, 200);
  EXPECT_TRUE(longest.ends());
}

}  // namespace
}  // namespace hapax::gate
