// Its effect comes from a static library, tests/plugins/fee.cpp.
#include <hapax/plugin.hpp>

namespace fees {
long with_fee(long amount);
}

namespace {

class Fees final : public hapax::Handler {
  void handle(const hapax::Message& message, hapax::Context& context) override {
    context.result(fees::with_fee(message.json().get<long>()));
  }
};

}  // namespace

HAPAX_PLUGIN(hapax::handler<Fees>("fees"))
