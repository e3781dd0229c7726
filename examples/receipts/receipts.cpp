// Books a payment and publishes a receipt for it: both happen, or neither, however often the
// message is delivered. A consumer of the topic recognises a repeated receipt by its
// `idempotency-key`.
#include <hapax/plugin.hpp>

namespace {

class Receipts final : public hapax::Handler {
 public:
  void handle(const hapax::Message& message, hapax::Context& context) override {
    const auto payment = message.json();
    if (payment.at("amount_minor") <= 0) throw hapax::Reject("amount_minor must be positive");
    const auto account = payment.at("account").get<std::string>();
    context.insert("booked", {"id", "account", "amount_minor"}, payment.at("id"), account,
                   payment.at("amount_minor"));
    const nlohmann::json receipt = {{"payment", payment.at("id")},
                                    {"amount_minor", payment.at("amount_minor")}};
    // The account's receipts keep their order. The name makes the key, so give each publish one.
    context.publish("receipts", {.key = account, .payload = receipt.dump(), .name = "receipt"});
  }
};

}  // namespace

HAPAX_PLUGIN(hapax::handler<Receipts>("receipts"))
