// Books each @name@ request once, and answers it. A client that retries gets the same answer.
#pragma once

#include <hapax/handler.hpp>

struct @Class@Payload {
  std::string id, account;
  long amount = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(@Class@Payload, id, account, amount)

class @Class@ final : public hapax::Handler {
 public:
  // hapax lends an open transaction and commits it together with the request's idempotency key and
  // its answer.
  void handle(const hapax::Message& message, hapax::Context& context) override {
    const auto payload = message.as<@Class@Payload>();  // 422 with the member's name if it does not fit
    if (payload.amount <= 0) throw hapax::Reject("amount must be positive");  // 422
    const std::string tenant(message.header(":tenant").value_or(""));  // who calls
    const auto inserted = context.sql(
        "INSERT INTO @name@_entries (tenant, id, account, amount) VALUES ($1, $2, $3, $4) "
        "ON CONFLICT DO NOTHING",
        tenant, payload.id, payload.account, payload.amount);
    if (inserted.affected() == 0) {  // under another Idempotency-Key: a retry can never work
      context.respond(409, {{"Content-Type", "application/json"}},
                      nlohmann::json{{"id", payload.id}, {"status", "booked before"}}.dump());
      throw hapax::Reject("the id is booked already");
    }
    // A sum shows at once if a request took effect twice.
    context.write(
        "INSERT INTO @name@_sums (tenant, account, amount) VALUES ($1, $2, $3) "
        "ON CONFLICT (tenant, account) DO UPDATE SET amount = @name@_sums.amount + excluded.amount",
        tenant, payload.account, payload.amount);
    context.respond(201, {{"Content-Type", "application/json"}},
                    nlohmann::json{{"id", payload.id}, {"status", "booked"}}.dump());
  }
};
