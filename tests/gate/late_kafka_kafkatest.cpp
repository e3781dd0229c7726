// A gate that starts while Kafka is away: it serves what publishes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "gate/http_client.hpp"
#include "key/sha256.hpp"
#include "sandbox/proxy.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;
using gate::Reply;
using testing::HasSubstr;

class LateKafka : public testing::Test {
 protected:
  // Accepts for /later, and /now has a handler that publishes as its message asks.
  std::unique_ptr<WorkerProcess> gate(const std::string& bootstrap,
                                      const nlohmann::json& kafka = {},
                                      const std::string& listen = "127.0.0.1:0") {
    nlohmann::json config = {
        {"gate",
         {{"listen", listen},
          {"callers", {{"tokens", "ann " + key::hex(key::sha256("token-of-ann"))}}},
          {"operations", {{"key", std::string(128, 'a')}}}}},
        {"kafka", {{"bootstrap.servers", bootstrap}, {"group.id", site.group()}}},
        {"postgres", {{"url", site.database().worker().url}}},
        {"routes",
         {{{"path", "/later"}, {"accept", {{"topic", topic}, {"scope", "s"}}}},
          {{"path", "/now"},
           {"handler", "publishing"},
           {"plugin", HAPAX_BINARY_DIR "/lib/libscripted.so"}}}}};
    config["kafka"].update(kafka.is_null() ? nlohmann::json::object() : kafka);
    return std::make_unique<WorkerProcess>(WorkerOptions{config, {}, "gate"});
  }

  void await_port(WorkerProcess& gate) {
    port = gate.await("gate", {}, 1, 60s).at("port").get<std::uint16_t>();
  }

  Reply post(const std::string& path, const std::string& key, const std::string& body) const {
    gate::HttpClient client(port);
    client.send("POST " + path +
                " HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer token-of-ann\r\n" +
                "Idempotency-Key: " + key + "\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body);
    return client.read();
  }
  Reply pay(const std::string& key, bool publishes) const {
    nlohmann::json payment = nlohmann::json::parse(*site.payment(publishes ? 2 : 1).payload);
    if (publishes) payment["publish"] = {{{"topic", topic}, {"value", "paid"}}};
    return post("/now", key, payment.dump());
  }

  static void expect_unavailable(const Reply& reply) {
    EXPECT_EQ(reply.status, 503) << reply.body;
    EXPECT_EQ(reply.header("content-type"), "application/problem+json");
    EXPECT_NE(reply.header("retry-after"), "");
    EXPECT_THAT(reply.body, HasSubstr("urn:hapax:gate:unavailable"));
  }

  Site site = Site::on_mock_cluster(1);
  const std::string topic = site.topic();
  std::uint16_t port = 0;
};

// A broker whose connections are cut until the test lets them pass.
class LateBroker {
 public:
  explicit LateBroker(const std::string& bootstrap)
      : proxy_(target_of(bootstrap), {}, [this](int, sandbox::Proxy::From, const std::string&) {
          return is_there_ ? sandbox::Proxy::Then::forward : sandbox::Proxy::Then::cut;
        }) {}

  std::string bootstrap() const { return "127.0.0.1:" + std::to_string(proxy_.port()); }
  void come() { is_there_ = true; }

 private:
  static sandbox::Proxy::Target target_of(const std::string& bootstrap) {
    const std::string first = bootstrap.substr(0, bootstrap.find(','));
    const std::size_t colon = first.rfind(':');
    return {first.substr(0, colon), first.substr(colon + 1)};
  }

  std::atomic<bool> is_there_ = false;
  sandbox::Proxy proxy_;
};

TEST_F(LateKafka, HoldsUpOnlyWhatPublishes) {
  LateBroker broker(site.bootstrap());
  const auto gate = this->gate(broker.bootstrap());
  await_port(*gate);
  expect_unavailable(post("/later", "k1", "{}"));
  expect_unavailable(pay("k2", true));
  const Reply paid = pay("k3", false);
  EXPECT_EQ(paid.status / 100, 2) << paid.status << paid.body;
  gate->await_not_ready("Kafka does not answer");
  EXPECT_EQ(site.database().value("SELECT count(*) FROM payments"), "1");

  broker.come();
  gate->await("kafka_found");
  gate->await_ready();
  const Reply accepted = post("/later", "k1", "{}");
  EXPECT_EQ(accepted.status, 202) << accepted.body;
  const Reply published = pay("k2", true);
  EXPECT_EQ(published.status / 100, 2) << published.body;
  EXPECT_EQ(pay("k3", false).header("idempotent-replayed"), "true");
  site.await("SELECT count(*) FROM hapax.outbox", "0");  // sent
  EXPECT_EQ(site.database().value("SELECT count(*) FROM payments"), "2");
  expect_leaves(*gate);
}

// Nothing is sent from a copy, and the decision `copy` would remove what was accepted.
TEST_F(LateKafka, HoldsUpWhatPublishesWhileTheDatabaseIsACopy) {
  const auto copy = site.database().copy();
  site.database().look_at(test::postgres(), copy->name());
  const auto gate = this->gate(site.bootstrap());
  await_port(*gate);
  expect_unavailable(post("/later", "k1", "{}"));
  EXPECT_EQ(pay("k2", false).status / 100, 2);
  gate->await_not_ready("the database is a copy");
  site.database().run(
      "UPDATE hapax.store SET database_oid = (SELECT oid FROM pg_database WHERE datname = "
      "current_database())");
  gate->await("kafka_found");
  EXPECT_EQ(post("/later", "k1", "{}").status, 202);
  expect_leaves(*gate);
}

TEST_F(LateKafka, HoldsUpNoGateThatIsToldToLeave) {
  const auto gate = this->gate("127.0.0.1:1");
  await_port(*gate);
  expect_leaves(*gate);
}

TEST_F(LateKafka, KeepsNoGateThatCannotListen) {
  const auto gate = this->gate("127.0.0.1:1", {}, "192.0.2.1:1");
  EXPECT_EQ(gate->ended().code, 3) << gate->output();
}

TEST_F(LateKafka, EndsTheGateIfItShallNotWait) {
  const auto gate = this->gate("127.0.0.1:1", {{"wait_for_topics", false}});
  EXPECT_EQ(gate->ended().code, 4) << gate->output();
  EXPECT_EQ(gate->count("gate"), 0U);
}

}  // namespace
}  // namespace hapax::support
