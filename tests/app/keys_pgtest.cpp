// `hapax keys forget` as an operator types it: how the key's message comes again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "sandbox/temporary_folder.hpp"
#include "support/command.hpp"
#include "support/database.hpp"

namespace hapax::support {
namespace {

using testing::HasSubstr;
using testing::Not;

class ForgottenKey : public testing::Test {
 protected:
  ForgottenKey() {
    const nlohmann::json config = {
        {"kafka", {{"bootstrap.servers", "127.0.0.1:1"}, {"group.id", "g"}}},
        {"postgres", {{"url", database.owner().url}}},
        {"routes",
         {{{"topic", "t"},
           {"handler", "payments"},
           {"plugin", HAPAX_BINARY_DIR "/lib/libpayments.so"},
           {"key", {{"header", "idempotency-key"}}}}}}};
    std::ofstream(folder.path() / "worker.json") << config.dump();
    database.run(
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
        "partition, kafka_offset, expires_at) VALUES ('k', 'payments', 'completed', 'g', 't', 1, "
        "0, 7, now() + interval '1 day'); "
        "INSERT INTO hapax.checkpoints (group_id, topic, partition, next_offset, key_spec, scope) "
        "VALUES ('g', 't', 0, 8, 'k', 'payments')");
  }
  std::string forget() {
    return hapax({"keys", "forget", "k", "--why", "a test", "--yes"}, folder.path() / "worker.json")
        .text;
  }

  test::Database database;
  sandbox::TemporaryFolder folder{"keys"};
};

// The offset would mean another message, and all that follow it would come again.
TEST_F(ForgottenKey, TellsARewindOnlyIntoTheLogOfItsMessage) {
  EXPECT_THAT(forget(), HasSubstr("hapax offsets rewind t/0 --to 7"));
  database.run(
      "UPDATE hapax.checkpoints SET generation = 2; UPDATE hapax.idempotency_keys SET status = "
      "'completed'");
  const std::string told = forget();
  EXPECT_THAT(told, HasSubstr("it is of an earlier log of the topic"));
  EXPECT_THAT(told, Not(HasSubstr("rewind")));
}

TEST_F(ForgottenKey, TellsNoRewindWithoutACheckpoint) {
  database.run("DELETE FROM hapax.checkpoints");
  const std::string told = forget();
  EXPECT_THAT(told, HasSubstr("no checkpoint of t/0"));
  EXPECT_THAT(told, Not(HasSubstr("rewind")));
}

}  // namespace
}  // namespace hapax::support
