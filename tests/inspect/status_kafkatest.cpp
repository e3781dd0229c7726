// What `hapax status` and what follows from it tell an operator, and its exit code a script.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <iterator>

#include "flow/stored_response.hpp"
#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"
#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using testing::HasSubstr;
using testing::Not;

// As an operator pastes it, in a shell without USER.
Said shell(const std::string& line, const std::string& url) {
  const sandbox::TemporaryFolder folder("shell");
  sandbox::Program program;
  program.argv = {
      "/bin/sh", "-c",
      "unset USER; export OPERATOR='" + url + "'; PATH=" HAPAX_BINARY_DIR "/bin:$PATH; " + line};
  program.output = folder.path() / "output";
  sandbox::ChildProcess process(program);
  const auto exit = process.wait(std::chrono::seconds(60));
  std::ifstream output(program.output);
  return {exit ? exit->code : -1, std::string{std::istreambuf_iterator<char>(output), {}}};
}

TEST(Status, ExitsWith0WhileNothingIsHalted) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 3);
  const auto worker = site.worker("w");
  site.await_no_lag();
  const Said well = hapax({"status"}, worker->config());
  EXPECT_EQ(well.code, 0) << well.text;
  expect_leaves(*worker);
}

// A start counts only if there was something to do.
TEST(Status, TellsNothingOfProgressIfThereIsNothingToDo) {
  Site site = Site::on_mock_cluster(2);
  Producer producer(site.bootstrap());
  producer.send(site.payment(0));
  const auto worker = site.worker("w", {{"worker", {{"lanes", 1}}}});
  site.await_no_lag();
  site.database().run("SELECT pg_advisory_lock(1)");
  producer.send(site.payment(2, {{"do", "hold"}}));  // partition 0 has work, partition 1 has none
  for (int starts = 1; starts <= 2; ++starts) {
    worker->kill();
    worker->start_again();
    site.await("SELECT started_runs FROM hapax.checkpoints WHERE partition = 0",
               std::to_string(starts));
  }
  site.await("SELECT started_runs FROM hapax.checkpoints WHERE partition = 1", "1");
  const Said said = hapax({"status", "--json"}, worker->config());
  EXPECT_EQ(said.code, 0) << said.text;
  const auto rows = nlohmann::json::parse(said.text).at("partitions");
  EXPECT_THAT(rows[0].at("state").get<std::string>(), HasSubstr("times without progress"));
  EXPECT_EQ(rows[1].at("state"), "running");
  site.database().run("SELECT pg_advisory_unlock(1)");
  site.await_booked(2);
  expect_leaves(*worker);
}

// Kafka may answer late. A checkpoint from before that would seem not to move.
TEST(Status, ReadsCheckpointsAfterKafka) {
  Site site = Site::on_mock_cluster(1);
  site.database().run(
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, next_offset, key_spec, scope) "
      "VALUES ('" +
      site.group() + "', '" + site.topic() + "', 0, 3, '', 's')");
  const sandbox::TemporaryFolder folder("status");
  const std::filesystem::path file = folder.path() / "worker.json";
  std::ofstream(file)
      << site.options("w", {{"kafka", {{"bootstrap.servers", "127.0.0.1:1"}}}}).config;
  std::future<Said> said = std::async(std::launch::async, [&] {
    return hapax({"status", "--json"}, file);
  });
  // For so long it has asked nothing of PostgreSQL, because it waits for Kafka.
  site.await(
      "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND usename = "
      "'hapax_worker' AND state = 'idle' AND state_change < now() - interval '2 seconds'",
      "t");
  site.database().run("UPDATE hapax.checkpoints SET next_offset = 4");
  const auto status = nlohmann::json::parse(said.get().text);
  EXPECT_EQ(status.at("partitions")[0].at("checkpoint"), 4);
}

TEST(Status, TellsOfAMessageWithWhichTheProcessEnded) {
  Site site = Site::on_mock_cluster(1);
  site.database().run(
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, next_offset, key_spec, scope) "
      "VALUES ('" +
      site.group() + "', '" + site.topic() +
      "', 0, 3, '', 's'); INSERT INTO hapax.attempts (group_id, topic, generation, partition, "
      "kafka_offset, count, crashes, last_error, handler, next_try) VALUES ('" +
      site.group() + "', '" + site.topic() + "', 1, 0, 3, 0, 1, 'it ended', 'h', now())");
  const sandbox::TemporaryFolder folder("status");
  const std::filesystem::path file = folder.path() / "worker.json";
  std::ofstream(file) << site.options("w").config;
  const std::string first = hapax({"status"}, file).text;
  EXPECT_THAT(first, HasSubstr("1x with the process"));
  EXPECT_THAT(first, Not(HasSubstr(" 0x ")));
  site.database().run("UPDATE hapax.attempts SET count = 2");
  EXPECT_THAT(hapax({"status"}, file).text, HasSubstr("2x, 1x with the process"));
  site.database().run("UPDATE hapax.attempts SET crashes = 0");
  EXPECT_THAT(hapax({"status"}, file).text, testing::ContainsRegex("2x +now"));
}

TEST(Status, TellsWhatOperatorMeansAndShowsAHaltsLines) {
  Site site = Site::on_mock_cluster(1);
  site.database().run(
      "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, reason, "
      "detail, halted_by) VALUES ('" +
      site.group() + "', '" + site.topic() +
      "', 0, false, 1, 'unexpected_error', E'ERROR: no right\\nDETAIL: none\\n', 'test')");
  const sandbox::TemporaryFolder folder("status");
  const std::filesystem::path file = folder.path() / "worker.json";
  std::ofstream(file) << site.options("w").config;
  const std::string text = hapax({"status"}, file).text;
  EXPECT_THAT(text, HasSubstr("\n      ERROR: no right\n      DETAIL: none\n      end it: "));
  EXPECT_THAT(text, testing::ContainsRegex("\n      OPERATOR is the URL of a role with the "
                                           "operator's rights \\(/.*/share/hapax/operator.psql\\) "
                                           "or the owner's, such as postgresql:///payments"));
}

TEST(Status, NamesACommandThatEndsAHaltAsItStands) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 1);
  const auto worker = site.worker("w");
  site.await_no_lag();
  site.database().run(
      "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, reason, "
      "detail, halted_by) VALUES ('" +
      site.group() + "', '" + site.topic() +
      "', 0, false, 1, 'unexpected_error', 'a test', 'test')");
  worker->await("halted");
  EXPECT_THAT(worker->output(), HasSubstr("stopped on purpose"));
  EXPECT_THAT(worker->output(), Not(HasSubstr("\"offset\":-1")));
  const Said said = hapax({"status"}, worker->config());
  EXPECT_EQ(said.code, 1);
  const std::string begins = "end it: ";
  const auto from = said.text.find(begins) + begins.size();
  ASSERT_LT(from, said.text.size()) << said.text;
  const Said resumed =
      shell(said.text.substr(from, said.text.find('\n', from) - from), site.database().owner().url);
  EXPECT_EQ(resumed.code, 0) << resumed.text;
  EXPECT_THAT(resumed.text, HasSubstr("before  " + site.topic() + "/0, checkpoint 1, highest 1"));
  EXPECT_THAT(resumed.text, Not(HasSubstr("{")));
  worker->await("resumed");
  EXPECT_NE(site.database().value("SELECT ended_by FROM hapax.halts"), "");
  expect_leaves(*worker);
}

// Such a partition would only halt again.
TEST(Status, AdvisesNoRetryIfFactsContradictEachOther) {
  Site site = Site::on_mock_cluster(1);
  const sandbox::TemporaryFolder folder("status");
  const std::filesystem::path file = folder.path() / "worker.json";
  std::ofstream(file) << site.options("w").config;
  site.database().run(
      "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, reason, "
      "detail, halted_by) VALUES ('" +
      site.group() + "', '" + site.topic() +
      "', 0, false, 1, 'checkpoint_missing', 'a test', 'test')");
  const std::string text = hapax({"status"}, file).text;
  EXPECT_THAT(text, Not(HasSubstr("--decision retry")));
  EXPECT_THAT(text, HasSubstr("/0 --decision DECISION --why"));
  for (const char* const told : {"\n      earliest: go on at the oldest message there is",
                                 "\n      accept_kafka: start at", "\n      retry: the cause"})
    EXPECT_THAT(text, HasSubstr(told));
}

class ShownKeys : public testing::Test {
 protected:
  // `columns` and `values` are beside those that all rows have.
  void store(const std::string& columns, const std::string& values) {
    site.database().run(
        "INSERT INTO hapax.idempotency_keys (key, scope, group_id, topic, generation, partition, "
        "kafka_offset, " +
        columns + ") VALUES ('k', 's', 'g', 't', 1, 0, 7, " + values + ")");
    std::ofstream(file()) << site.options("w").config;
  }
  std::filesystem::path file() const { return folder.path() / "worker.json"; }

  Site site = Site::on_mock_cluster(1);
  const sandbox::TemporaryFolder folder{"keys"};
};

TEST_F(ShownKeys, TellThatAWorkerHasACallUnderALease) {
  site.database().run(
      "INSERT INTO hapax.holders (group_id, worker, until) VALUES ('g', 'w7', 'infinity')");
  store("status, expires_at, token, holder",
        "'started', 'infinity', 1, (SELECT id FROM hapax.holders)");
  const auto waits = HasSubstr("calls for it, or waits to call again: worker w7 has it");
  EXPECT_THAT(hapax({"explain", "--key", "k"}, file()).text, waits);
  site.database().run("UPDATE hapax.holders SET until = now()");
  EXPECT_THAT(hapax({"explain", "--key", "k"}, file()).text, Not(waits));
}

// Nothing is stored under its key before it is settled.
TEST_F(ShownKeys, PointToTheMessagesThatWaitForARetry) {
  store("status, expires_at", "'completed', now() + interval '1 day'");
  EXPECT_THAT(hapax({"explain", "--key", "other"}, file()).text,
              Not(HasSubstr("wait for a retry")));
  site.database().run(
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, next_offset, key_spec, scope) "
      "VALUES ('" +
      site.group() +
      "', 't', 0, 3, '', 's'); INSERT INTO hapax.attempts (group_id, topic, generation, partition, "
      "kafka_offset, count, last_error, handler, next_try) VALUES ('" +
      site.group() + "', 't', 1, 0, 3, 1, 'no', 'h', now())");
  const Said said = hapax({"explain", "--key", "other"}, file());
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr("wait for a retry. This may be one of them"));
  EXPECT_THAT(said.text, HasSubstr("`hapax status` lists them"));
}

TEST_F(ShownKeys, TellWhatAGateHasAnswered) {
  store("status, expires_at, result",
        "'completed', now() + interval '1 day', '" +
            flow::stored_text({422, {{"Content-Type", "text/plain"}}, "too little"}) + "'");
  EXPECT_THAT(hapax({"keys", "list"}, file()).text, HasSubstr("completed, answered 422"));
  site.database().run("UPDATE hapax.idempotency_keys SET result = '{\"status\":422}'");
  EXPECT_THAT(hapax({"keys", "list"}, file()).text, Not(HasSubstr("answered")));
}

TEST(Status, TellsOfDeadLettersWhoseOperationWasCompletedSince) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  producer.send(site.payment(0, {{"do", "reject"}, {"why", "no account"}}));
  producer.send(site.payment(1, {{"do", "reject"}, {"why", "no account"}}));
  const auto worker = site.worker("w", {{"log", {{"error_text", true}}}});
  worker->await("route", {{"handler", "scripted"}, {"version", "1"}});
  for (const int letter : {1, 2})  // of either message: two lanes
    worker->await("dead_letter",
                  {{"dead_letter", letter}, {"handler", "scripted"}, {"error", "no account"}});
  site.pay(producer, 0, 1);
  site.await_booked(1);
  worker->await_metric("hapax_handler_info{handler=\"scripted\",topic=\"" + site.topic() +
                       "\",version=\"1\"} 1");
  EXPECT_THAT(hapax({"status"}, worker->config()).text,
              HasSubstr("dead letters: 2 (rejected 2); of 1 another message completed"));
  EXPECT_THAT(hapax({"dead", "list"}, worker->config()).text, HasSubstr("completed-since"));
  const auto letter_of = [&](int offset) {
    return site.database().value("SELECT id FROM hapax.dead_letters WHERE kafka_offset = " +
                                 std::to_string(offset));
  };
  EXPECT_THAT(hapax({"dead", "show", letter_of(0)}, worker->config()).text,
              HasSubstr("completed    since, by " + site.topic() + "/0/2"));
  EXPECT_THAT(hapax({"dead", "show", letter_of(1)}, worker->config()).text,
              Not(HasSubstr("completed    since")));
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
