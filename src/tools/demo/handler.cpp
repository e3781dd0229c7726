#include "tools/demo/handler.hpp"

namespace hapax::app {
namespace {

class DemoPayments final : public Handler {
 public:
  void handle(const Message& message, Context& context) override {
    const auto payment = message.json();
    if (payment.at("amount_minor") <= 0) throw Reject("amount_minor must be positive");
    context.insert("payments", {"id", "account", "amount_minor"}, payment.at("id"),
                   payment.at("account"), payment.at("amount_minor"));
    context.result({{"status", "booked"}});
  }
};

}  // namespace

HandlerFactory demo_handler() { return handler<DemoPayments>(kDemoHandler, "1"); }

}  // namespace hapax::app
