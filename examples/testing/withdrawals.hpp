// Takes money from accounts. Nothing in its SQL stops it from taking it twice; hapax does.
#pragma once

#include <hapax/handler.hpp>

class Withdrawals final : public hapax::Handler {
 public:
  void on_start(const hapax::Setup& setup) override {
    limit_ = setup.options().at("limit").get<long>();
  }

  void handle(const hapax::Message& message, hapax::Context& context) override {
    const auto withdrawal = message.json();
    const long amount = withdrawal.at("amount").get<long>();
    if (amount <= 0 || amount > limit_) throw hapax::Reject("amount must be 1 to the limit");
    const hapax::Rows left =
        context.sql("UPDATE accounts SET balance = balance - $2 WHERE id = $1 RETURNING balance",
                    withdrawal.at("account"), amount);
    if (left.empty()) throw hapax::Retry("the account is not open yet");
    context.write("INSERT INTO statements (account, amount) VALUES ($1, $2)",
                  withdrawal.at("account"), -amount);
    context.result({{"balance", left[0].get<long>("balance")}});
  }

 private:
  long limit_ = 0;
};
