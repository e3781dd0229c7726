// Books payments: one row in the ledger for each payment, however often its message is delivered.
#pragma once

#include <hapax/handler.hpp>

class Payments final : public hapax::Handler {
 public:
  // Runs inside an open PostgreSQL transaction that hapax commits together with the payment's
  // idempotency key. Both happen, or neither.
  void handle(const hapax::Message& message, hapax::Context& context) override {
    const auto payment = message.json();  // Reject if it is not JSON
    if (!payment.contains("amount_minor") || payment["amount_minor"] <= 0)
      throw hapax::Reject("amount_minor must be positive");
    context.insert("payments", {"id", "account", "amount_minor"}, payment.at("id"),
                   payment.at("account"), payment.at("amount_minor"));
    context.result({{"status", "booked"}});
  }
};
