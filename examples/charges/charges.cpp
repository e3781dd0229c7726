// Charges a payment gateway over HTTP, and books what it answers.
//
// This gateway keeps idempotency keys for a day, so worker.json declares `repeat: idempotent`. With
// a gateway that can only be asked, declare `queryable`. With one that does neither, declare
// `never`.
#include <httplib.h>

#include <chrono>
#include <hapax/outside.hpp>
#include <hapax/plugin.hpp>
#include <memory>

namespace {

class Charges final : public hapax::OutsideHandler {
 public:
  void on_start(const hapax::Setup& setup) override {
    gateway_ = std::make_unique<httplib::Client>(setup.options().at("gateway").get<std::string>());
    gateway_->set_connection_timeout(std::chrono::seconds(2));
    gateway_->set_keep_alive(true);
  }

  nlohmann::json call(const hapax::Message& message, const hapax::Call& call) override {
    const nlohmann::json payment = message.json();
    limit_to(call);
    const httplib::Result answer = gateway_->Post("/charges",
                                                  {{"Idempotency-Key", std::string(call.key())},
                                                   {"Fencing-Token", std::to_string(call.token())}},
                                                  payment.dump(), "application/json");
    // Only this one means that nothing was sent.
    if (answer.error() == httplib::Error::Connection)
      throw hapax::NotCalled("the gateway does not accept connections");
    if (!answer) throw std::runtime_error("no answer: " + httplib::to_string(answer.error()));
    if (answer->status == 402) throw hapax::Reject("declined: " + answer->body);
    if (answer->status != 200)
      throw std::runtime_error("the gateway answered " + std::to_string(answer->status));
    return nlohmann::json::parse(answer->body);
  }

  void book(const hapax::Message& message, const nlohmann::json& answer,
            hapax::Context& context) override {
    const nlohmann::json payment = message.json();
    context.insert("charges", {"payment", "charge", "amount_minor"}, payment.at("id"),
                   answer.at("charge"), payment.at("amount_minor"));
    context.result(answer);
  }

  hapax::Verdict reconcile(const hapax::Message& /*message*/, const hapax::Call& call) override {
    limit_to(call);
    const httplib::Result answer = gateway_->Get("/charges/" + std::string(call.key()));
    if (!answer) return hapax::Verdict::unknown();
    if (answer->status == 200) return hapax::Verdict::done(nlohmann::json::parse(answer->body));
    if (answer->status == 404) return hapax::Verdict::not_done();
    return hapax::Verdict::unknown();
  }

 private:
  void limit_to(const hapax::Call& call) {
    gateway_->set_read_timeout(std::chrono::ceil<std::chrono::seconds>(
        call.deadline() - std::chrono::steady_clock::now()));
  }

  std::unique_ptr<httplib::Client> gateway_;
};

}  // namespace

HAPAX_PLUGIN(hapax::handler<Charges>("charges", "1"))
