// The handlers of tests/figures: each books a row, and does as little beside it as it can.
#include <chrono>
#include <hapax/outside.hpp>
#include <hapax/plugin.hpp>
#include <string>
#include <thread>

namespace {

using hapax::Call;
using hapax::Context;
using hapax::Message;

// Books a row. If the option "publish" names a topic, it also publishes a record of 200 bytes.
class Booking final : public hapax::Handler {
  void on_start(const hapax::Setup& setup) override {
    topic_ = setup.options().value("publish", std::string());
  }
  void handle(const Message& message, Context& context) override {
    const auto order = message.json();
    const auto account = order.at("account").get<std::string>();
    context.insert("booked", {"id", "account"}, order.at("id"), account);
    if (!topic_.empty())
      context.publish(topic_, {.key = account, .payload = std::string(200, 'x'), .name = "booked"});
  }

  std::string topic_;
};

// Sleeps for 50 ms instead of a call, so that the processors are left to hapax and PostgreSQL.
class Waiting final : public hapax::OutsideHandler {
  nlohmann::json call(const Message& /*message*/, const Call& /*call*/) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return {{"charge", 1}};
  }
  void book(const Message& message, const nlohmann::json& /*answer*/, Context& context) override {
    const auto order = message.json();
    context.insert("booked", {"id", "account"}, order.at("id"), order.at("account"));
  }
};

}  // namespace

HAPAX_PLUGIN(hapax::handler<Booking>("booking"), hapax::handler<Waiting>("waiting"))
