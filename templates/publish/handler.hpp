// Books each @name@ message once, and publishes a receipt for it.
#pragma once

#include <hapax/handler.hpp>

struct @Class@Payload {
  std::string id, account;
  long amount = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(@Class@Payload, id, account, amount)

class @Class@ final : public hapax::Handler {
 public:
  // hapax lends an open transaction and commits it together with the message's idempotency key.
  void handle(const hapax::Message& message, hapax::Context& context) override {
    const auto payload = message.as<@Class@Payload>();  // a Reject that names the member if it does not fit
    if (payload.amount <= 0) throw hapax::Reject("amount must be positive");
    context.insert("@name@_entries", {"id", "account", "amount"}, payload.id, payload.account,
                   payload.amount);
    // A sum shows at once if a message took effect twice.
    context.write(
        "INSERT INTO @name@_sums (account, amount) VALUES ($1, $2) "
        "ON CONFLICT (account) DO UPDATE SET amount = @name@_sums.amount + excluded.amount",
        payload.account, payload.amount);
    // Sent if and only if the transaction commits. The receipts of an account keep their order.
    const nlohmann::json receipt = {{"id", payload.id}, {"amount", payload.amount}};
    context.publish("@name@_receipts",
                    {.key = payload.account, .payload = receipt.dump(), .name = "receipt"});
  }
};
