#include <gtest/gtest.h>

#include "config/kafka_rules.hpp"
#include "sample.hpp"

namespace hapax::config {
namespace {

std::string refusal(const std::string& property, const nlohmann::json& value) {
  return problem_at(load(with("/kafka/" + property, value)), "kafka." + property);
}

TEST(KafkaSection, PassesLibrdkafkasPropertiesAsText) {
  auto document = with("/kafka/session.timeout.ms", 6000);
  document["kafka"]["client.id"] = "worker-1";
  document["kafka"]["socket.keepalive.enable"] = true;
  document["kafka"]["debug"] = "cgrp";
  const Loaded loaded = load(document);
  ASSERT_TRUE(loaded.config) << format(loaded.problems);
  EXPECT_EQ(loaded.config->kafka.properties,
            (std::map<std::string, std::string>{{"bootstrap.servers", "kafka:9092"},
                                                {"group.id", "payments"},
                                                {"session.timeout.ms", "6000"},
                                                {"client.id", "worker-1"},
                                                {"socket.keepalive.enable", "true"},
                                                {"debug", "cgrp"}}));
}

// As `"sasl.password": 4711`, which would be seen in what is shown of the file.
TEST(KafkaSection, TakesSecretsAsStringsOnlyAndShowsNone) {
  for (const char* const secret : {"sasl.password", "ssl.key.password"}) {
    EXPECT_TRUE(has(refusal(secret, 4711), "must be a string"));
    EXPECT_FALSE(has(refusal(secret, 4711), "4711"));
    EXPECT_EQ(refusal(secret, "4711"), "");
  }
}

TEST(KafkaSection, RefusesWhatWouldBreakThePromise) {
  const std::vector<std::pair<std::string, std::vector<nlohmann::json>>> refused = {
      {"enable.auto.commit", {true, "true", "True", "t", "1", 1, "", " false"}},
      {"auto.commit.enable", {true}},
      {"enable.auto.offset.store", {true}},
      {"offset.store.method", {"file", "none"}},
      {"auto.offset.reset", {"earliest", "latest", "smallest", "largest", "beginning", "end"}},
      {"topic.auto.offset.reset", {"earliest", "latest"}},  // the same to librdkafka
      {"topic.auto.commit.enable", {true}},
      {"allow.auto.create.topics", {true}},
      {"isolation.level", {"read_uncommitted", "READ_UNCOMMITTED", 0}},
      {"check.crcs", {false, "false", 0}},
      {"enable.partition.eof", {false}},
      {"group.protocol", {"consumer"}},
      {"partition.assignment.strategy",
       {"cooperative-sticky", "range,cooperative-sticky", "", "range,", "sticky"}},
      {"max.poll.interval.ms", {9999, "0", "-1", "300s", "", 1.5}},
      {"metadata.broker.list", {"kafka:9092"}},
      {"topic.metadata.refresh.interval.ms", {-1, "-1", 0, "", "1m"}},
      {"topic.blacklist", {"pay.*"}},
      {"receive.message.max.bytes", {1000, "1999999", "", "10MB"}},
      {"plugin.library.paths", {"monitoring-interceptor"}},
      {"test.mock.num.brokers", {3}},
      {"api.version.request", {false, "0"}},
      {"rebalance_cb", {"x"}},
      {"enabled_events", {1}}};
  for (const auto& [property, values] : refused)
    for (const auto& value : values)
      EXPECT_NE(refusal(property, value), "") << property << " = " << value;
}

TEST(KafkaSection, TakesThosePropertiesIfTheyAreRight) {
  const std::vector<std::pair<std::string, std::vector<nlohmann::json>>> taken = {
      {"enable.auto.commit", {false, "false", "FALSE", "f", 0}},
      {"auto.offset.reset", {"error"}},
      {"topic.metadata.refresh.interval.ms", {2000, "10"}},
      {"receive.message.max.bytes", {2'000'000, "1000000000"}},
      {"api.version.request", {true}},
      {"isolation.level", {"read_committed"}},
      {"check.crcs", {true}},
      {"group.protocol", {"classic"}},
      {"partition.assignment.strategy",
       {"range", "roundrobin", "range,roundrobin", "range, range"}},
      {"max.poll.interval.ms", {10'000, "300000"}}};
  for (const auto& [property, values] : taken)
    for (const auto& value : values)
      EXPECT_EQ(refusal(property, value), "") << property << " = " << value;
}

TEST(KafkaSection, TellsWhyAndHowToFixIt) {
  EXPECT_EQ(
      refusal("enable.auto.commit", true),
      "found true; hapax moves an offset itself, after the effects are in PostgreSQL; Kafka's "
      "own commits would lose messages; remove it, or set it to false");
  EXPECT_TRUE(has(refusal("partition.assignment.strategy", "cooperative-sticky"), "#4059"));
  EXPECT_TRUE(has(refusal("group.protocol", "consumer"), "2.12"));
}

TEST(KafkaSection, RefusesAGroupWithoutAName) {
  EXPECT_EQ(refusal("group.id", " \t"),
            "found \" \\t\"; allowed: the name of the consumer group, not only blanks");
  EXPECT_EQ(refusal("group.id", ""), "found \"\"; allowed: the name of the consumer group");
  EXPECT_EQ(refusal("group.id", " a"), "");
}

TEST(KafkaSection, TellsATypoInItsOwnNamesFromAProperty) {
  EXPECT_TRUE(has(refusal("intial", "latest"), "did you mean initial?"));
  EXPECT_TRUE(has(refusal("group_id", "x"), "did you mean group.id?"));
  auto document = with("/kafka/bootstrap.server", "kafka:9092");
  document["kafka"].erase("bootstrap.servers");
  EXPECT_TRUE(has(problem_at(load(document), "kafka.bootstrap.servers"),
                  "is bootstrap.server meant to be it?"));
}

TEST(KafkaSection, RefusesValuesThatAreNoText) {
  for (const nlohmann::json& value :
       {nlohmann::json(nullptr), nlohmann::json::array(), nlohmann::json::object()})
    EXPECT_TRUE(has(refusal("client.id", value), "allowed: a string, a number, true or false"));
}

TEST(KafkaRules, KnowHowLibrdkafkaReadsThatBrokersAreNotVerified) {
  EXPECT_TRUE(verifies_brokers({}));
  EXPECT_TRUE(verifies_brokers({{"enable.ssl.certificate.verification", "true"},
                                {"ssl.endpoint.identification.algorithm", "https"}}));
  for (const char* const no : {"false", "FALSE", "f", "0"})
    EXPECT_FALSE(verifies_brokers({{"enable.ssl.certificate.verification", no}})) << no;
  EXPECT_FALSE(verifies_brokers({{"ssl.endpoint.identification.algorithm", "None"}}));
}

}  // namespace
}  // namespace hapax::config
