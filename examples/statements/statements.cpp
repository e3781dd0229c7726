// The second half of a chain: a group of its own books the receipts that examples/receipts
// publishes. A relay that dies may send a receipt twice, with one `idempotency-key`. The route's
// key is that header, so the receipt is booked once, though the table has no unique constraint.
#include <hapax/plugin.hpp>

namespace {

class Statements final : public hapax::Handler {
 public:
  void handle(const hapax::Message& message, hapax::Context& context) override {
    const auto receipt = message.json();
    context.insert("entries", {"account", "payment", "amount_minor"}, message.key(),
                   receipt.at("payment"), receipt.at("amount_minor"));
  }
};

}  // namespace

HAPAX_PLUGIN(hapax::handler<Statements>("statements"))
