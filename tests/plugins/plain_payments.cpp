// The handler of scripts/peer.sh: what the other consumers do for a payment, and nothing more.
#include <hapax/plugin.hpp>

namespace {

class PlainPayments final : public hapax::Handler {
  void handle(const hapax::Message& message, hapax::Context& context) override {
    const auto payment = message.json();
    context.insert("payments", {"id", "account", "amount_minor"}, payment.at("id"),
                   payment.at("account"), payment.at("amount_minor"));
  }
};

}  // namespace

HAPAX_PLUGIN(hapax::handler<PlainPayments>("plain_payments"))
