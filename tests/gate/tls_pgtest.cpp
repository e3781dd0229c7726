// TLS in the gate itself, over real sockets.
#include <fstream>

#include "gate/gate_case.hpp"
#include "gate/tls_client.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::gate {
namespace {

using namespace std::chrono_literals;
using support::Authority;
using support::Certificate;
using support::Valid;

class GateTls : public GateCase {
 protected:
  GateTls() {
    config.gate.tls = {.certificate = own.certificate, .key = own.key};
    config.gate.looks_at_files = 10ms;
    body = [](const Message& message, Context& context) {
      context.sql("INSERT INTO effects (key, note) VALUES ($1, 'x')",
                  message.header("idempotency-key").value_or("none"));
      context.respond(200, {}, std::string(*message.header(":tenant")));
    };
  }

  void take_certificates() { config.gate.tls.client_ca = authority.certificate(); }

  TlsClient::Options options_of(const Certificate* shows = nullptr) const {
    return {authority.certificate(), shows};
  }
  Reply ask_tls(const std::string& text, const Certificate* shows = nullptr) {
    TlsClient client(port(), options_of(shows));
    client.send(text);
    return client.read();
  }
  static std::string order(Headers headers, const std::string& content = "10") {
    headers.emplace_back("Idempotency-Key", "k1");
    return request("POST", "/payments", headers, content);
  }

  // Until new connections get a certificate other than this one.
  void await_another(long serial) {
    for (int i = 0; i < 1000; ++i) {
      if (TlsClient(port(), options_of()).serial() != serial) return;
      std::this_thread::sleep_for(10ms);
    }
    FAIL() << "still certificate " << serial;
  }

  sandbox::TemporaryFolder folder{"tls"};
  Authority authority{folder.path(), "authority"};
  Certificate own = authority.issue("gate", "localhost");
};

TEST_F(GateTls, ServesAsPlainHttpDoes) {
  config.gate.limits.body_bytes = std::size_t{4} << 20;
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(port(), {authority.certificate(), nullptr, version});
    ASSERT_TRUE(client.is_up());
    for (const std::size_t size : {std::size_t{1}, std::size_t{3} << 20}) {
      const std::string key = std::to_string(version) + "-" + std::to_string(size);
      client.send(request("POST", "/payments", keyed(key), std::string(size, 'x')));
      const Reply reply = client.read();
      EXPECT_EQ(reply.status, 200) << reply.body;
      EXPECT_EQ(reply.body, "ann");
    }
    client.send(
        request("POST", "/payments", keyed("c", {{"Expect", "100-continue"}}), "10")
            .substr(0, request("POST", "/payments", keyed("c", {{"Expect", "100-continue"}}), "10")
                               .size() -
                           2));
    EXPECT_EQ(client.read().status, 100);
    client.send("10");
    EXPECT_EQ(client.read().status, 200);
    client.send(request("GET", "/healthz", {{"Connection", "close"}}));
    EXPECT_EQ(client.read().status, 200);
    EXPECT_TRUE(client.ends()) << "with a farewell, so that nobody can cut an answer unseen";
  }
  EXPECT_EQ(keys(), 5);
}

TEST_F(GateTls, RefusesOldVersionsAndPlainHttp) {
  EXPECT_FALSE(TlsClient(port(), {authority.certificate(), nullptr, TLS1_1_VERSION}).is_up());
  HttpClient plain(port());
  plain.send(request("GET", "/healthz", {}));
  EXPECT_EQ(plain.read().status, 0);
  await_metric(gate(), "hapax_gate_handshakes_failed_total", "2");
}

TEST_F(GateTls, BoundsTheTimeOfAHandshake) {
  config.gate.limits.header_time = 300ms;
  HttpClient silent(port());
  EXPECT_TRUE(silent.ends());
  HttpClient slow(port());
  slow.send("\x16\x03\x01");
  EXPECT_TRUE(slow.ends());
  Reply reply;  // the bound holds for a good client on a busy machine, too
  for (int i = 0; i < 100 && reply.status != 200; ++i) reply = ask_tls(order(as_ann()));
  EXPECT_EQ(reply.status, 200);
}

TEST_F(GateTls, WhoStandsInAHandshakeMakesRoomForOthers) {
  config.gate.limits.connections = 1;
  HttpClient silent(port());
  Reply reply;  // a young handshake makes no room
  for (int i = 0; i < 10'000 && reply.status != 200; ++i) reply = ask_tls(order(as_ann()));
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(silent.ends());
}

TEST_F(GateTls, TheCertificateOfAClientTellsWhoCalls) {
  take_certificates();
  const Certificate ann = authority.issue("ann");
  const Certificate bob = authority.issue("bob");
  EXPECT_EQ(ask_tls(order({}), &ann).body, "ann");
  EXPECT_EQ(ask_tls(order({}), &bob).body, "bob") << "callers never meet";
  EXPECT_EQ(ask_tls(order({}), &ann).header("idempotent-replayed"), "true");
  EXPECT_EQ(ask_tls(order(as_ann())).header("idempotent-replayed"), "true")
      << "a tenant is one, however it calls";
  EXPECT_EQ(runs, 2);
}

TEST_F(GateTls, ExactlyOneKindOfCallerCounts) {
  take_certificates();
  const Certificate ann = authority.issue("ann");
  const Reply both = ask_tls(order(as_ann()), &ann);
  EXPECT_EQ(both.status, 401);
  EXPECT_NE(both.body.find("Send only one of them"), std::string::npos) << both.body;
  const Reply none = ask_tls(order({}));
  EXPECT_EQ(none.status, 401);
  EXPECT_NE(none.body.find("client certificate, or send a bearer token"), std::string::npos)
      << none.body;
  EXPECT_EQ(runs, 0);
}

TEST_F(GateTls, AProxySpeaksForItsClientsWithAnyCertificate) {
  take_certificates();
  config.gate.callers.proxies = {*config::parse_network("127.0.0.0/8")};
  config.gate.callers.header = "x-tenant";
  const Certificate proxy = authority.issue("proxy");
  EXPECT_EQ(ask_tls(order({{"X-Tenant", "carl"}}), &proxy).body, "carl");
  EXPECT_EQ(ask_tls(order({}), &proxy).status, 401);
}

TEST_F(GateTls, TakesNoCertificateOfOthers) {
  take_certificates();
  Authority stranger(folder.path(), "stranger");
  const Certificate forged = stranger.issue("forged-ann");
  const Certificate expired = authority.issue("old-ann", {}, Valid::expired);
  for (const Certificate* const shown : {&forged, &expired})
    EXPECT_EQ(ask_tls(order({}), shown).status, 0);
  EXPECT_EQ(runs, 0);
}

TEST_F(GateTls, WithoutAnAuthorityNoCertificateCounts) {
  const Certificate ann = authority.issue("ann");
  EXPECT_EQ(ask_tls(order({}), &ann).status, 401);
  EXPECT_EQ(ask_tls(order(as_ann()), &ann).status, 200);
}

TEST_F(GateTls, TakesNewFilesForNewConnections) {
  TlsClient first(port(), options_of());
  const long before = first.serial();
  authority.issue("gate", "localhost");  // into the same files, one after the other
  await_another(before);
  first.send(order(as_ann()));
  EXPECT_EQ(first.read().status, 200) << "who is connected stays so";
}

TEST_F(GateTls, TakesNewTokens) {
  const std::filesystem::path tokens = folder.path() / "tokens";
  const auto line = [](const std::string& token) {
    return "ann " + key::hex(key::sha256(token)) + "\n";
  };
  std::ofstream(tokens) << line("token-of-ann");
  config.gate.callers.tokens_file = tokens;
  TlsClient client(port(), options_of());
  const auto status = [&](const std::string& token) {
    client.send(order({{"Authorization", "Bearer " + token}}, ""));  // a refused body would close
    return client.read().status;
  };
  EXPECT_EQ(status("token-of-ann"), 200);
  std::ofstream(folder.path() / "next") << line("another-token");
  std::filesystem::rename(folder.path() / "next", tokens);
  for (int i = 0; i < 1000 && status("another-token") != 200; ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_EQ(status("another-token"), 200);
  EXPECT_EQ(status("token-of-ann"), 401) << "also on a connection that it was good for";
}

TEST_F(GateTls, DrainsInTime) {
  TlsClient idle(port(), options_of());
  HttpClient in_handshake(port());
  TlsClient busy(port(), options_of());
  Door door;
  body = [&](const Message&, Context&) { door.pass(); };
  busy.send(order(as_ann()));
  door.await_waiting(1);
  std::thread draining([&] { EXPECT_TRUE(gate().gate.drain()); });
  door.open();
  EXPECT_EQ(busy.read().status, 204);
  draining.join();
}

TEST_F(GateTls, ADrainDoesNotWaitForWhoEndsTheHandshakeAndSendsNothing) {
  const auto at = port();
  std::thread draining;
  TlsClient::Options late = options_of();
  late.before_handshake = [&] {
    TlsClient later(at, options_of());
    later.send(order(as_ann()));
    EXPECT_NE(later.read().status, 0) << "the gate has taken the connection before it, too";
    draining = std::thread([&] {
      const auto began = Clock::now();
      EXPECT_TRUE(gate().gate.drain());
      EXPECT_LT(Clock::now() - began, 5s);
    });
    EXPECT_EQ(later.read().status, 0) << "idle, so the drain closes it as it begins";
  };
  TlsClient client(at, late);
  EXPECT_TRUE(client.is_up());
  draining.join();
}

}  // namespace
}  // namespace hapax::gate
