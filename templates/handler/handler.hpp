// Books each @name@ message once, and keeps a sum for each account.
#pragma once

#include <hapax/handler.hpp>

class @Class@ final : public hapax::Handler {
 public:
  // hapax lends an open transaction and commits it together with the message's idempotency key.
  void handle(const hapax::Message& message, hapax::Context& context) override {
    const auto payload = message.json();  // Reject if it is not JSON
    for (const char* field : {"id", "account", "amount"})
      if (!payload.contains(field)) throw hapax::Reject(std::string(field) + " is missing");
    if (payload["amount"] <= 0) throw hapax::Reject("amount must be positive");
    context.insert("@name@_entries", {"id", "account", "amount"}, payload["id"], payload["account"],
                   payload["amount"]);
    // A sum shows at once if a message took effect twice.
    context.write(
        "INSERT INTO @name@_sums (account, amount) VALUES ($1, $2) "
        "ON CONFLICT (account) DO UPDATE SET amount = @name@_sums.amount + excluded.amount",
        payload["account"], payload["amount"]);
    context.result({{"status", "booked"}});  // stored with the key
  }
};
