// What a worker does if it finds no topic, database or schema: it logs that, and waits or ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sandbox/temporary_folder.hpp"
#include "store/operator/migrate.hpp"
#include "support/command.hpp"
#include "support/kafka_admin.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kUnreachable = 4;  // the exit code

void expect_refuses(Site& site, const nlohmann::json& patch, const std::string& sentence) {
  const auto worker = site.worker("w", patch);
  const sandbox::Exit exit = worker->ended();
  EXPECT_EQ(exit.code, kUnreachable) << exit.text();
  EXPECT_THAT(worker->output(), HasSubstr(sentence));
}

nlohmann::json topic_named(const std::string& name, bool wait) {
  return {{"route", {{"topic", name}}}, {"kafka", {{"wait_for_topics", wait}}}};
}

nlohmann::json database_at(const std::string& url, bool wait) {
  return {{"postgres", {{"url", url}, {"wait_at_start", wait}}}};
}

TEST(MissingTopic, IsWaitedForWithALineInTheLog) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  const std::string late = site.topic() + "-late";
  const auto worker = site.worker("w", topic_named(late, true));
  const auto said = worker->await("waiting_for_kafka");
  EXPECT_EQ(said.at("error"), "Kafka has no topic \"" + late + "\"");
  worker->await_not_ready("kafka: no assignment yet: Kafka has no topic \\\"" + late);
  const std::string ready = worker->get("/readyz").body;
  EXPECT_THAT(ready, Not(HasSubstr("not known to be reachable")));
  EXPECT_THAT(ready, Not(HasSubstr("postgres: ")));
  create_topic(site.bootstrap(), late, 1);
  worker->await("partition_started", {{"topic", late}});
  EXPECT_EQ(worker->count("waiting_for_kafka"), 1U);
  expect_leaves(*worker);
}

TEST(MissingTopic, IsRefusedIfTheConfigurationWantsIt) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  expect_refuses(site, topic_named("nowhere", false), "Kafka has no topic \"nowhere\"");
}

TEST(MissingTopic, IsTheCommandThatMakesItInCheck) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  const sandbox::TemporaryFolder folder("check");
  std::ofstream(folder.path() / "worker.json")
      << site.options("w", topic_named("nowhere", true)).config;
  EXPECT_THAT(hapax({"check"}, folder.path() / "worker.json").text,
              HasSubstr("FAIL  topic nowhere: does not exist → create it: kafka-topics.sh "
                        "--bootstrap-server " +
                        site.bootstrap() + " --create --topic nowhere --partitions 6"));
}

TEST(MissingTopic, ASigtermEndsTheWait) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  const auto worker = site.worker("w", topic_named("nowhere", true));
  worker->await("waiting_for_kafka");
  expect_leaves(*worker);
  EXPECT_EQ(worker->count("stopped"), 1U) << worker->output();
}

TEST(MissingDatabase, IsRefusedInOneSentence) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  expect_refuses(site, database_at(test::postgres().url("nowhere", "hapax_worker"), false),
                 "database \"nowhere\" does not exist");
}

TEST(MissingSchema, IsRefusedAndTheSentenceTellsHowToMakeIt) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  test::Database empty(test::Database::Content::empty);
  expect_refuses(site, database_at(empty.worker().url, false), "hapax migrate up");
}

TEST(MissingSchema, IsWaitedForUntilAnOwnerMigrates) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  test::Database empty(test::Database::Content::empty);
  const auto worker = site.worker("w", database_at(empty.owner().url, true));
  const auto said = worker->await("waiting_for_postgres");
  EXPECT_THAT(said.at("error").get<std::string>(), HasSubstr("hapax migrate up"));
  EXPECT_THAT(worker->output(), HasSubstr("PostgreSQL answers; waiting for hapax's schema in it"));
  store::Session owner(empty.owner());
  store::migrate_up(owner);
  worker->await("partition_started");
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
