// The next release of the handler of examples/payments: each payment has a currency.
#include <hapax/plugin.hpp>

namespace {

class NextPayments final : public hapax::Handler {
  void handle(const hapax::Message& message, hapax::Context& context) override {
    const auto payment = message.json();
    if (!payment.contains("currency")) throw hapax::Reject("a payment has a currency");
    context.insert("payments", {"id", "account", "amount_minor", "currency"}, payment.at("id"),
                   payment.at("account"), payment.at("amount_minor"), payment.at("currency"));
  }
};

}  // namespace

HAPAX_PLUGIN(hapax::handler<NextPayments>("payments", "2"))
