// Which plugins hapax loads, and what it answers to the others.
#include "plugin/load.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "hapax/plugin.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::plugin {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string library(const std::string& name) {
  return std::string(HAPAX_BINARY_DIR) + "/lib/lib" + name + ".so";
}

std::string refusal(const std::string& path) {
  try {
    load_plugin(path);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

// Keeps what a handler stores and passes.
class Keeping final : public Context {
 public:
  json stored;
  std::vector<Parameter> passed;

 private:
  pqxx::dbtransaction& lend() override { throw std::logic_error("no transaction here"); }
  Rows run(std::string_view /*text*/, std::vector<Parameter> values) override {
    passed = std::move(values);
    return {};
  }
  void defer(std::string_view /*text*/, std::vector<Parameter> /*values*/) override {}
  void publish_record(std::string_view /*topic*/, Outgoing /*record*/) override {}
  void set_result(std::string text) override { stored = json::parse(text); }
  void set_response(Response /*response*/) override {}
  std::string current_traceparent() override { return ""; }
  Operation current_operation() override { return {"k1", "ann"}; }
  void defer_row(std::string_view /*table*/, std::span<const std::string_view> /*columns*/,
                 std::span<Parameter> /*values*/) override {}
};

// This binary exports its symbols, which is the worst case: a plugin could call ours.
TEST(Plugin, MayUseAnotherLayoutOfJson) {
  const auto factories = load_plugin(library("other_json"));
  ASSERT_EQ(factories.size(), 1U);
  EXPECT_EQ(factories[0].name, "echo");
  const std::unique_ptr<Handler> echo = factories[0].make();
  const json options = {{"deep", {1, {{"er", "text"}}, nullptr}}};
  echo->on_start({"topic", options.dump()});
  const json sent = {{"list", {1.5, true, {{"a", {{"b", {2}}}}}}}};
  const std::string payload = sent.dump();
  EXPECT_EQ(Message({.payload = payload}).json(), sent);  // ours, which a plugin must not find
  Keeping context;
  echo->handle(Message({.payload = payload}), context);
  const json answer = {{"options", options}, {"message", sent}, {"key", "k1"}, {"tenant", "ann"}};
  EXPECT_EQ(context.stored, answer);
  ASSERT_EQ(context.passed.size(), 1U);
  EXPECT_EQ(context.passed[0].text(), answer.dump());
  echo->on_duplicate(Message({.payload = payload}), StoredResult(answer.dump()), context);
  EXPECT_EQ(context.stored, sent);
}

// As a shadow run does: both in one process.
TEST(Plugin, KeepsTheVariablesOfItsStaticLibrariesToItself) {
  for (const int fee : {1, 2}) {
    const auto factories = load_plugin(library("fees_" + std::to_string(fee)));
    Keeping context;
    factories[0].make()->handle(Message({.payload = "10"}), context);
    EXPECT_EQ(context.stored, 10 + fee);
  }
}

TEST(Plugin, OfAnotherAbiIsRefusedBeforeItsCodeRuns) {
  EXPECT_THAT(refusal(library("other_abi")),
              AllOf(HasSubstr("was built for hapax ABI 1, this hapax has " HAPAX_TEXT(HAPAX_ABI)),
                    HasSubstr("build it again with this hapax's headers and compiler")));
  EXPECT_THAT(refusal(library("other_compiler")),
              HasSubstr("was built for compiler ABI martian, this hapax has " HAPAX_COMPILER_ABI));
  EXPECT_THAT(refusal(library("other_pqxx")), HasSubstr("was built for libpqxx 1.2.3, this"));
}

TEST(Plugin, ThatIsNoneIsNamed) {
  EXPECT_THAT(refusal(library("no_plugin")),
              HasSubstr("is no hapax plugin: it has no HAPAX_PLUGIN"));
  EXPECT_THAT(
      refusal("/nowhere/libx.so"),
      HasSubstr("cannot load the plugin: /nowhere/libx.so is not there. Has it been built?"));
  const sandbox::TemporaryFolder folder("plugin");
  const std::string text = folder.path() / "text.so";
  std::ofstream(text) << "no library";
  EXPECT_THAT(refusal(text), HasSubstr(text));
}

}  // namespace
}  // namespace hapax::plugin
