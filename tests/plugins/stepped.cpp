// A handler whose call has two steps: it charges the payment, and a fee. With the option
// "fee_is_away" the second one cannot be sent, with "is_away" none. With "fee_is_cut" the first one
// of the process fails, and the other side can tell that it did not happen.
#include <httplib.h>

#include <atomic>
#include <hapax/outside.hpp>
#include <hapax/plugin.hpp>

namespace {

std::atomic<bool> was_cut{false};

class Stepped final : public hapax::OutsideHandler {
 public:
  void on_start(const hapax::Setup& setup) override {
    gateway_ = setup.options().at("gateway");
    fee_is_away_ = setup.options().contains("fee_is_away");
    fee_is_cut_ = setup.options().contains("fee_is_cut");
    is_away_ = setup.options().contains("is_away");
  }

  nlohmann::json call(const hapax::Message& message, const hapax::Call& call) override {
    if (is_away_) throw hapax::NotCalled("the gateway does not accept connections");
    const nlohmann::json payment = message.json();
    const auto charged =
        call.step("charge", [&](std::string_view key) { return charge(payment, "/charge", key); });
    call.step("fee", [&](std::string_view key) {
      if (fee_is_cut_ && !was_cut.exchange(true)) throw std::runtime_error("cut");
      if (fee_is_away_) throw hapax::NotCalled("the fee's gateway does not accept connections");
      return charge(payment, "/fee", key);
    });
    return charged;
  }

  hapax::Verdict reconcile(const hapax::Message& /*message*/,
                           const hapax::Call& /*call*/) override {
    return hapax::Verdict::not_done();
  }

  void book(const hapax::Message& message, const nlohmann::json& answer,
            hapax::Context& context) override {
    context.insert("charges", {"payment", "charge", "amount_minor"}, message.json().at("id"),
                   answer.at("charge"), 1);
  }

 private:
  nlohmann::json charge(nlohmann::json payment, const std::string& what, std::string_view key) {
    payment["id"] = payment.at("id").get<std::string>() + what;
    httplib::Client gateway(gateway_);
    const auto answer =
        gateway.Post("/charges", {{"Idempotency-Key", std::string(key)}, {"Fencing-Token", "1"}},
                     payment.dump(), "application/json");
    if (!answer || answer->status != 200) throw std::runtime_error("no answer");
    return nlohmann::json::parse(answer->body);
  }

  std::string gateway_;
  bool fee_is_away_ = false, fee_is_cut_ = false, is_away_ = false;
};

}  // namespace

HAPAX_PLUGIN(hapax::handler<Stepped>("stepped"))
