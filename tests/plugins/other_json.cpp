// A plugin that was built with another layout of nlohmann::json than hapax: each value knows its
// parent. It answers with its options, the message and the names of the operation.
#define JSON_DIAGNOSTICS 1
#include <hapax/plugin.hpp>

namespace {

class Echo final : public hapax::Handler {
  void on_start(const hapax::Setup& setup) override { options_ = setup.options(); }
  void handle(const hapax::Message& message, hapax::Context& context) override {
    nlohmann::json answer = {{"options", options_},
                             {"message", message.json()},
                             {"key", context.key()},
                             {"tenant", context.tenant()}};
    context.sql("SELECT $1", answer);
    context.result(answer);
  }
  void on_duplicate(const hapax::Message&, const hapax::StoredResult& stored,
                    hapax::Context& context) override {
    context.result(stored.json().at("message"));
  }

  nlohmann::json options_;
};

}  // namespace

HAPAX_PLUGIN(hapax::handler<Echo>("echo", "1"))
