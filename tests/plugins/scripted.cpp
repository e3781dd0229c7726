// A handler whose messages say what it does, for the tests that run whole workers.
//
// Books a payment as examples/payments does, after doing what the payload's "do" says:
//   "reject"  throws Reject
//   "fail"    throws, each time
//   "wait"    throws Retry, an hour away
//   "sleep"   keeps the transaction open for "seconds"
//   "next"    rejects unless "sequence" is one more than the account's last
#include <hapax/plugin.hpp>

namespace {

class Scripted final : public hapax::Handler {
 public:
  void handle(const hapax::Message& message, hapax::Context& context) override {
    const auto payment = message.json();
    const std::string what = payment.value("do", "");
    if (what == "reject") throw hapax::Reject("told to reject");
    if (what == "fail") throw std::runtime_error("told to fail");
    if (what == "wait") throw hapax::Retry("told to wait", std::chrono::hours(1));
    if (what == "sleep") context.sql("SELECT pg_sleep($1)", payment.at("seconds"));
    if (what == "next") check_sequence(payment, context);
    context.write("INSERT INTO payments (id, account, amount_minor) VALUES ($1, $2, $3)",
                  payment.at("id"), payment.at("account"), payment.at("amount_minor"));
  }

 private:
  static void check_sequence(const nlohmann::json& payment, hapax::Context& context) {
    const auto rows =
        context.sql("SELECT count(*) FROM payments WHERE account = $1", payment.at("account"));
    const auto booked = rows[0][0].as<std::int64_t>();
    if (payment.at("sequence") != booked)
      throw hapax::Reject("out of order: this is " + payment.at("sequence").dump() +
                          ", booked are " + std::to_string(booked));
  }
};

}  // namespace

HAPAX_PLUGIN(hapax::handler<Scripted>("scripted", "1"))
