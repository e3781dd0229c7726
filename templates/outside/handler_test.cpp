// Needs no Kafka and no other system: the harness delivers messages on a throw-away PostgreSQL, and
// the double answers.
#include "@name@.hpp"

#include <gtest/gtest.h>

#include <hapax/testing.hpp>
#include <thread>

#include "double.hpp"

namespace {

using hapax::testing::Harness;
using hapax::testing::Options;
using hapax::testing::Record;
using hapax::testing::Result;

Record message(const std::string& id, long amount) {
  return {.payload = nlohmann::json{{"id", id}, {"account", "ada"}, {"amount", amount}}.dump(),
          .headers = {{"idempotency-key", id}}};
}

class @Class@Test : public testing::Test {
 protected:
  ~@Class@Test() override { server.stop(); }

  Options options() {
    return {.config = "worker.json",
            .schema = {"schema.sql"},
            .worker_role = "worker_role.sql",
            .environment = {{"OTHER_SIDE", "http://127.0.0.1:" + std::to_string(port)}}};
  }

  httplib::Server server;
  Double other_side{server};
  int port = server.bind_to_any_port("127.0.0.1");
  std::jthread thread{[this] { server.listen_after_bind(); }};
  Harness harness{hapax::handler<@Class@>("@name@"), options()};
};

// The call is broken off at each point. Then the message is delivered again.
TEST_F(@Class@Test, IsNotRepeatedBlindly) {
  harness.expect_no_blind_repeat(message("m1", 30),
                                 {.effects = [this] { return other_side.charges(); },
                                  .forget = [this] { other_side.forget(); }});
}

TEST_F(@Class@Test, ChargesOnceForTwoDeliveries) {
  harness.deliver(message("m1", 30));
  EXPECT_EQ(harness.resend(message("m1", 30)).result, Result::duplicate);
  EXPECT_EQ(other_side.charges(), 1);
  EXPECT_EQ(harness.sql("SELECT charge FROM @name@_entries")[0].get<std::string>("charge"), "c1");
}

TEST_F(@Class@Test, WaitsWhileTheOtherSideIsAway) {
  server.stop();
  const auto outcome = harness.attempt(message("m1", 30));
  EXPECT_EQ(outcome.result, Result::waiting) << outcome;
}

}  // namespace
