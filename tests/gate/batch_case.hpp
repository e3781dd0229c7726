// The base of the tests of requests that share a transaction. All lanes are busy until the requests
// wait, so that lanes take them together.
#pragma once

#include "gate/accept_case.hpp"

namespace hapax::gate {

// `Base`: GateCase or AcceptCase.
template <class Base>
class BatchCase : public Base {
 protected:
  struct Asked {
    std::string key;
    std::string content = "10";
    std::string tenant = "ann";
  };

  BatchCase() {
    this->config.gate.lanes = 1;
    this->config.gate.wait = std::chrono::seconds(20);
    this->config.gate.batch_time = std::chrono::seconds(30);  // however slow the machine is
    config::GateRoute busy{"/busy"};
    config::Route base;
    base.topic = busy.path;
    base.key.scope = this->config.gate.scope;
    base.retention = this->config.gate.retention;
    this->config.gate.routes.insert(this->config.gate.routes.begin(), busy);
    this->config.base.routes.insert(this->config.base.routes.begin(), base);
  }

  // Sends them behind one another. Each lane then takes its share of them.
  std::vector<std::unique_ptr<HttpClient>> send_batch(const std::vector<Asked>& asked) {
    if (!door_)
      this->body = [this, inner = this->body](const Message& message, Context& context) {
        if (message.topic() == "/busy") return std::shared_ptr(door_)->pass();
        ++handled;
        inner(message, context);
      };
    door_ = std::make_shared<Door>();
    const int lanes = static_cast<int>(this->config.gate.lanes);
    for (int lane = 0; lane < lanes; ++lane) {
      busy_.push_back(sent("/busy", {"busy-" + std::to_string(busy_.size())}));
      door_->await_waiting(lane + 1);
    }
    std::vector<std::unique_ptr<HttpClient>> clients;
    for (const Asked& one : asked) {
      clients.push_back(sent("/payments", one));
      await_metric("hapax_gate_queue " + std::to_string(clients.size()));
    }
    door_->open();
    return clients;
  }

  std::vector<Reply> ask_batch(const std::vector<Asked>& asked) {
    std::vector<Reply> replies;
    for (const auto& client : send_batch(asked)) replies.push_back(client->read());
    return replies;
  }

  // Polls, as the gate tells no test who waits.
  void await_metric(const std::string& line) {
    for (int i = 0; i < 1000; ++i) {
      if (this->gate().metrics.text().find("\n" + line + "\n") != std::string::npos) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << line << " is not in\n" << this->gate().metrics.text();
  }

  // The keys of the effects; those of one transaction with a '+' between them.
  std::string transactions() {
    return this->database.value(
        "SELECT coalesce(string_agg(keys, ' ' ORDER BY first), '') FROM (SELECT string_agg(key, "
        "'+' ORDER BY id) AS keys, min(id) AS first FROM effects GROUP BY xmin::text) t");
  }

  std::atomic<int> handled = 0;

 private:
  std::unique_ptr<HttpClient> sent(const std::string& path, const Asked& asked) {
    auto client = std::make_unique<HttpClient>(this->port());
    client->send(this->request(
        "POST", path,
        {{"Authorization", "Bearer token-of-" + asked.tenant}, {"Idempotency-Key", asked.key}},
        asked.content));
    return client;
  }

  std::shared_ptr<Door> door_;  // of the last batch; its lanes stand in front of it
  std::vector<std::unique_ptr<HttpClient>> busy_;
};

}  // namespace hapax::gate
