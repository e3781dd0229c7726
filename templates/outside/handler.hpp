// Calls another system for each @name@ message, and books its answer once.
//
// That system keeps idempotency keys, so worker.json declares `repeat: idempotent`. If yours can
// only be asked, declare `queryable` and override reconcile. If it can do neither, declare `never`.
#pragma once

#include <httplib.h>

#include <chrono>
#include <hapax/outside.hpp>
#include <memory>
#include <stop_token>

struct @Class@Payload {
  std::string id, account;
  long amount = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(@Class@Payload, id, account, amount)

class @Class@ final : public hapax::OutsideHandler {
 public:
  void on_start(const hapax::Setup& setup) override {
    client_ = std::make_unique<httplib::Client>(setup.options().at("other_side").get<std::string>());
    client_->set_connection_timeout(std::chrono::seconds(2));
  }

  // Runs without a transaction. Parse first: what fails before anything is sent is no doubt.
  nlohmann::json call(const hapax::Message& message, const hapax::Call& call) override {
    const auto payload = message.as<@Class@Payload>();
    // Also if the other side sends a byte now and then, for ever.
    const std::stop_callback end(call.stop_token(), [this] { client_->stop(); });
    client_->set_read_timeout(std::chrono::ceil<std::chrono::seconds>(
        call.deadline() - std::chrono::steady_clock::now()));
    const nlohmann::json body = {{"account", payload.account}, {"amount", payload.amount}};
    const httplib::Result answer =
        client_->Post("/charges", {{"Idempotency-Key", std::string(call.key())}}, body.dump(),
                      "application/json");
    // Only this error means that nothing was sent.
    if (answer.error() == httplib::Error::Connection)
      throw hapax::NotCalled("the other side accepts no connection");
    if (!answer) throw std::runtime_error("no answer: " + httplib::to_string(answer.error()));
    if (answer->status == 402) throw hapax::Reject("declined: " + answer->body);
    if (answer->status != 200)
      throw std::runtime_error("the other side answered " + std::to_string(answer->status));
    return nlohmann::json::parse(answer->body);
  }

  // Runs in the transaction that completes the key. It may run again, with the same answer.
  void book(const hapax::Message& message, const nlohmann::json& answer,
            hapax::Context& context) override {
    const auto payload = message.as<@Class@Payload>();
    context.insert("@name@_entries", {"id", "account", "amount", "charge"}, payload.id,
                   payload.account, payload.amount, answer.at("charge"));
    context.result(answer);  // stored with the key
  }

 private:
  std::unique_ptr<httplib::Client> client_;
};
