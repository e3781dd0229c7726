// Requests that a gate accepts go through the outbox, a real Kafka and a worker to their results.
// Meanwhile gate and worker are killed.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "gate/http_client.hpp"
#include "key/sha256.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;
using gate::HttpClient;
using gate::Reply;

class AcceptedChain : public testing::Test {
 protected:
  void SetUp() override {
    HAPAX_NEEDS_KAFKA();
    site_.emplace(3);
  }

  std::unique_ptr<WorkerProcess> gate(const nlohmann::json& patch = {}) {
    nlohmann::json config = {
        {"gate",
         {{"listen", "127.0.0.1:0"},
          {"callers", {{"tokens", "ann " + key::hex(key::sha256("token-of-ann"))}}},
          {"operations", {{"key", std::string(128, 'a')}}}}},
        {"admin", {{"listen", "127.0.0.1:0"}}},
        {"kafka", {{"bootstrap.servers", site().bootstrap()}, {"group.id", site().group()}}},
        {"postgres", {{"url", site().database().worker().url}}},
        {"routes",
         {{{"path", "/payments"},
           {"accept",
            {{"topic", site().topic()},
             {"scope", "answering"},
             {"record_key", {{"json", "/account"}}}}}}}}};
    config.merge_patch(patch.is_null() ? nlohmann::json::object() : patch);
    auto process = std::make_unique<WorkerProcess>(WorkerOptions{config, {}, "gate"});
    return process;
  }

  std::unique_ptr<WorkerProcess> worker(const std::string& name) {
    return site().worker(name, {{"route", {{"handler", "answering"}}}});
  }

  void await_port(WorkerProcess& gate) {
    port_ = gate.await("gate", {}, 1, 60s).at("port").get<std::uint16_t>();
    gate.await_ready();  // until it has found Kafka, it answers 503 to what it would publish
  }

  // Status 0: there was no answer.
  Reply ask(const std::string& method, const std::string& path, const std::string& key,
            const std::string& body) {
    try {
      HttpClient client(port_);
      client.send(method + " " + path +
                  " HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer token-of-ann\r\n"
                  "Content-Type: application/json\r\n" +
                  (key.empty() ? "" : "Idempotency-Key: " + key + "\r\n") +
                  "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
      return client.read();
    } catch (const std::runtime_error&) {
      return {};
    }
  }

  Reply pay(int number) {
    return ask("POST", "/payments", "key-" + std::to_string(number),
               *site().payment(number).payload);
  }

  // As clients do: until there is an answer that is not about the moment.
  Reply pay_until_answered(int number) {
    for (;;) {
      Reply reply = pay(number);
      if (reply.status != 0 && reply.status != 409 && reply.status < 500) return reply;
      std::this_thread::sleep_for(20ms);
    }
  }
  Reply await_result(const std::string& location) {
    for (;;) {
      Reply reply = ask("GET", location, "", "");
      if (reply.status != 0 && reply.status != 202 && reply.status < 500) return reply;
      std::this_thread::sleep_for(20ms);
    }
  }

  void expect_result(const Reply& reply, int number) {
    EXPECT_EQ(reply.status, 200) << reply.body;
    const auto body = nlohmann::json::parse(reply.body, nullptr, false);
    EXPECT_EQ(body.value("status", ""), "completed") << reply.body;
    EXPECT_EQ(body["response"]["body"], nlohmann::json({{"booked", "p" + std::to_string(number)}}));
  }

  // Each payment once, and nothing is left over. For a record that came again the handler books
  // an answer.
  void expect_exact(int payments) {
    const std::string wanted = std::to_string(payments);
    EXPECT_EQ(site().database().value("SELECT count(*), count(DISTINCT id), sum(amount_minor) FROM "
                                      "payments WHERE account <> 'answers'"),
              wanted + "|" + wanted + "|" + std::to_string(payments * (payments + 1) / 2));
    EXPECT_EQ(site().database().count("SELECT count(*) FROM hapax.dead_letters"), 0);
    EXPECT_EQ(site().database().value(
                  "SELECT scope, count(*) FROM hapax.idempotency_keys GROUP BY 1 ORDER BY 1"),
              "answering|" + wanted + "\ngate|" + wanted);
  }

  Site& site() { return *site_; }

 private:
  std::optional<Site> site_;
  std::atomic<std::uint16_t> port_ = 0;
};

TEST_F(AcceptedChain, ARetryInEachPhaseGetsTheOneOperation) {
  constexpr int kAcceptedPayments = 40;
  const auto gate = this->gate();
  await_port(*gate);
  std::vector<std::string> locations;
  const auto retry_all = [&](const std::string& phase) {
    for (int i = 0; i < kAcceptedPayments; ++i) {
      const Reply again = pay(i);
      EXPECT_EQ(again.status, 202) << phase;
      EXPECT_EQ(again.header("idempotent-replayed"), "true") << phase;
      EXPECT_EQ(again.header("location"), locations[static_cast<std::size_t>(i)]) << phase;
    }
  };
  for (int i = 0; i < kAcceptedPayments; ++i) {
    const Reply reply = pay(i);
    ASSERT_EQ(reply.status, 202) << reply.body << gate->output();
    EXPECT_EQ(reply.header("idempotent-replayed"), "");
    locations.push_back(reply.header("location"));
  }
  retry_all("accepted");
  EXPECT_EQ(ask("GET", locations[0], "", "").status, 202);
  gate->kill();
  gate->start_again();
  await_port(*gate);
  retry_all("the gate was killed");
  site().await("SELECT count(*) FROM hapax.outbox", "0");
  retry_all("sent");
  const auto first = worker("first");
  site().await_booked(5);
  first->kill();
  const auto second = worker("second");
  retry_all("the worker was killed");
  for (int i = 0; i < kAcceptedPayments; ++i)
    expect_result(await_result(locations[static_cast<std::size_t>(i)]), i);
  retry_all("completed");
  site().await_no_lag();
  expect_exact(kAcceptedPayments);
  expect_leaves(*gate);
  expect_leaves(*second);
}

TEST_F(AcceptedChain, EachOperationRunsOnceThroughKills) {
  constexpr int kAcceptedPayments = 400;
  constexpr int kClients = 8;
  const auto gate = this->gate();
  await_port(*gate);
  const auto worker = this->worker("worker");
  std::atomic<int> next = 0;
  std::vector<std::thread> clients;
  clients.reserve(kClients);
  for (int client = 0; client < kClients; ++client)
    clients.emplace_back([&] {
      for (int i; (i = next++) < kAcceptedPayments;) {
        const Reply accepted = pay_until_answered(i);
        EXPECT_EQ(accepted.status, 202) << accepted.body;
        expect_result(await_result(accepted.header("location")), i);
      }
    });
  for (int round = 1; round <= 3; ++round) {
    site().await("SELECT count(*) >= " + std::to_string(round * kAcceptedPayments / 4) +
                     " FROM payments WHERE account <> 'answers'",
                 "t");
    gate->kill();
    if (round > 1) {
      worker->kill();
      site().end_leases();
    }
    gate->start_again();
    if (round > 1) worker->start_again();
    await_port(*gate);
  }
  for (std::thread& client : clients) client.join();
  site().await("SELECT count(*) FROM hapax.outbox", "0");
  site().await_no_lag();
  expect_exact(kAcceptedPayments);
  expect_leaves(*gate);
  expect_leaves(*worker);
}

TEST_F(AcceptedChain, ATopicThatIsMissingIsNamed) {
  const auto gate = this->gate(
      {{"kafka", {{"wait_for_topics", false}}},
       {"routes", {{{"path", "/p"}, {"accept", {{"topic", "no-such"}, {"scope", "s"}}}}}}});
  EXPECT_EQ(gate->ended().code, 4) << gate->output();
  EXPECT_NE(gate->output().find("no-such"), std::string::npos) << gate->output();
}

}  // namespace
}  // namespace hapax::support
