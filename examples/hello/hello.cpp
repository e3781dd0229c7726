// The least there is: counts greetings. `{"name": "Ada"}` sent three times counts once.
#include <hapax/plugin.hpp>

namespace {

class Hello final : public hapax::Handler {
  void handle(const hapax::Message& message, hapax::Context& context) override {
    // What is thrown decides: Reject never works again and becomes a dead letter; Retry, and
    // everything else, is tried again by the route's policy.
    const auto greeting = message.json();
    if (!greeting.contains("name")) throw hapax::Reject("nobody to greet");

    // Commits together with the message's idempotency key, or not at all.
    context.write(
        "INSERT INTO greetings (name, count) VALUES ($1, 1) "
        "ON CONFLICT (name) DO UPDATE SET count = greetings.count + 1",
        greeting["name"]);
  }
};

}  // namespace

HAPAX_PLUGIN(hapax::handler<Hello>("hello"))
