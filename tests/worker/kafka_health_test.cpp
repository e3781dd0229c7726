// The board of health learns that Kafka is away, and that it is back; a changed password is used.
#include "worker/kafka_health.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "fake_consumer.hpp"

namespace hapax::worker {
namespace {

struct KafkaHealthTest : testing::Test {
  bool board_has(const std::string& reason) {
    const observe::Verdict verdict = board.ready();
    return std::ranges::any_of(verdict.reasons, [&](const std::string& found) {
      return found.find(reason) != std::string::npos;
    });
  }

  FakeConsumer consumer;
  observe::Health board;
  config::Kafka settings;
  KafkaHealth health{settings, "payments", consumer, board};
};

TEST_F(KafkaHealthTest, AsksNoBrokerWithoutAnError) {
  health.turn();
  EXPECT_EQ(consumer.asked, 0);
}

TEST_F(KafkaHealthTest, IsDownIfNoBrokerAnswersAfterAnErrorAndUpOnceOneDoes) {
  consumer.is_down = true;
  health.failed({false, "_TRANSPORT", "connection refused"});
  health.turn();
  EXPECT_TRUE(board_has("connection refused"));
  consumer.is_down = false;
  health.turn();
  EXPECT_FALSE(board_has("connection refused"));
  EXPECT_EQ(health.last_error(), "");
  const int asked = consumer.asked;
  health.turn();
  EXPECT_EQ(consumer.asked, asked) << "it was asked though nothing is in doubt";
}

TEST_F(KafkaHealthTest, ABrokerThatAnswersAfterAnErrorIsNoOutage) {
  health.failed({false, "_TRANSPORT", "connection refused"});
  health.turn();
  EXPECT_FALSE(board_has("connection refused"));
  EXPECT_EQ(health.last_error(), "");
}

TEST_F(KafkaHealthTest, NamesTheCauseAndNotThatAllBrokersAreDown) {
  health.failed({false, "_AUTHENTICATION", "the password is wrong"});
  health.failed({false, "_ALL_BROKERS_DOWN", "1/1 brokers are down"});
  EXPECT_EQ(health.last_error(), "the password is wrong");
}

TEST_F(KafkaHealthTest, NamesThatAllBrokersAreDownIfNothingElseIsKnown) {
  health.failed({false, "_ALL_BROKERS_DOWN", "1/1 brokers are down"});
  EXPECT_EQ(health.last_error(), "1/1 brokers are down");
}

// Of "localhost" librdkafka tries ::1 first, and then 127.0.0.1, at which the broker listens.
TEST_F(KafkaHealthTest, LogsAFailureThatMayPassOnlyIfNoBrokerAnswers) {
  const kafka::ClientError first{false, "_TRANSPORT", "Connect to ipv6#[::1]:9092 failed", true};
  testing::internal::CaptureStderr();
  health.failed(first);
  EXPECT_EQ(health.last_error(), first.text);
  health.turn();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  consumer.is_down = true;
  testing::internal::CaptureStderr();
  health.failed(first);
  health.turn();
  health.turn();
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_NE(logged.find("kafka_error: " + first.text), std::string::npos) << logged;
  EXPECT_EQ(std::ranges::count(logged, '\n'), 2) << logged;  // and kafka_down
}

TEST_F(KafkaHealthTest, LogsThatTheGroupRefusesItOnceThoughItIsToldAgainAndAgain) {
  testing::internal::CaptureStderr();
  health.refused_by_group("not authorized");
  health.refused_by_group("not authorized");
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(logged, '\n'), 1) << logged;
  EXPECT_TRUE(board_has("not authorized"));
}

TEST_F(KafkaHealthTest, AFatalErrorIsFinal) {
  EXPECT_FALSE(health.is_fatal());
  health.failed({true, "FENCED_INSTANCE_ID", "another member has this group.instance.id"});
  EXPECT_TRUE(health.is_fatal());
  EXPECT_FALSE(board.live().ok);
}

struct KafkaCredentialsTest : KafkaHealthTest {
  KafkaCredentialsTest() {
    settings.properties = {{"sasl.username", "hapax"}, {"sasl.password", "first"}};
    settings.files = {{"sasl.password", path}};
    write("first");
    health.renew_credentials();
  }
  ~KafkaCredentialsTest() override { std::filesystem::remove(path); }

  void write(const std::string& password) { std::ofstream(path) << password; }

  const std::string path = testing::TempDir() + "kafka_health_test_password";
};

TEST_F(KafkaCredentialsTest, AreNotSetAgainWhileTheyStay) {
  EXPECT_EQ(consumer.credentials.second, "");
}

TEST_F(KafkaCredentialsTest, AreTakenOverAfterAnError) {
  write("second");
  health.turn();
  EXPECT_EQ(consumer.credentials.second, "") << "they were read though nothing is in doubt";
  health.failed({false, "_AUTHENTICATION", "the password is wrong"});
  health.turn();
  EXPECT_EQ(consumer.credentials, std::pair(std::string("hapax"), std::string("second")));
}

TEST_F(KafkaCredentialsTest, ThatTheClientRefusesAreTriedAgain) {
  write("second");
  consumer.refuses_credentials = true;
  health.renew_credentials();
  consumer.refuses_credentials = false;
  health.renew_credentials();
  EXPECT_EQ(consumer.credentials.second, "second");
}

TEST_F(KafkaCredentialsTest, StayIfTheirFileIsGone) {
  write("second");
  health.renew_credentials();
  std::filesystem::remove(path);
  consumer.credentials = {};
  health.renew_credentials();
  EXPECT_EQ(consumer.credentials.second, "");
  EXPECT_EQ(current_properties(settings).at("sasl.password"), "first");
}

}  // namespace
}  // namespace hapax::worker
