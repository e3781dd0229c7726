// `hapax outbox`, and what `status`, `explain` and `check` tell of published records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sandbox/temporary_folder.hpp"
#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Rows as a handler leaves them, and no relay: the commands are about what waits.
class OutboxCommands : public testing::Test {
 protected:
  OutboxCommands() {
    std::ofstream(config()) << site.options("w", {{"publish", {{"topics", {"receipts"}}}}}).config;
    record("k1", "one");
    record("k1", "two\x1b[2J");
    record("k2", std::string(1, '\xff'));
  }

  void record(const std::string& key, const std::string& payload) {
    std::string hex;
    for (const char c : payload) {
      char two[3];
      std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
      hex += two;
    }
    site.database().run(
        "INSERT INTO hapax.outbox (group_id, topic, record_key, payload, headers, "
        "idempotency_key, source_topic, source_generation, source_partition, source_offset) "
        "VALUES ('" +
        site.group() + "', 'receipts', '" + key + "', '\\x" + hex +
        "', '[[\"kind\",\"receipt\"],[\"raw\",{\"hex\":\"ff\"}],[\"none\",null]]', 'key', '" +
        site.topic() + "', 1, 0, 7)");
  }
  void halt(const std::string& row, const std::string& key) {
    site.database().run(
        "INSERT INTO hapax.outbox_halts (group_id, topic, row_id, record_key, reason, detail, "
        "halted_by) VALUES ('" +
        site.group() + "', 'receipts', " + row + ", " + key +
        ", 'record_refused', 'MSG_SIZE_TOO_LARGE', 'w')");
  }
  Said outbox(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "outbox");
    return hapax(std::move(arguments), config());
  }
  // As an operator decides; the owner's role has the rights, too.
  Said decide(std::vector<std::string> arguments) {
    for (const std::string& more :
         {std::string("--why"), std::string("a test"), std::string("--who"), std::string("ann"),
          std::string("--url"), site.database().owner().url})
      arguments.push_back(more);
    return outbox(std::move(arguments));
  }

  std::filesystem::path config() const { return folder_.path() / "a worker's.json"; }
  std::string quoted_config() const {
    return "'" + (folder_.path() / "a worker'\\''s.json").string() + "'";
  }

  Site site = Site::on_mock_cluster(1);

 private:
  sandbox::TemporaryFolder folder_{"outbox"};
};

TEST_F(OutboxCommands, ListShowsWhatWaitsAndWhatToType) {
  EXPECT_THAT(outbox({"list"}).text, AllOf(HasSubstr("outbox: 3 unsent, the oldest for"),
                                           HasSubstr("receipts  3"), Not(HasSubstr("HALT"))));
  halt("1", "'k1'");
  const Said said = outbox({"list"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.text, AllOf(HasSubstr("HALT  record 1 of receipts (key \"k1\") halted since"),
                               HasSubstr("MSG_SIZE_TOO_LARGE"),
                               HasSubstr("end it: hapax outbox retry -c " + quoted_config() +
                                         " --url \"$OPERATOR\" 1 --why"),
                               HasSubstr("hapax outbox skip -c")));
  EXPECT_THAT(
      outbox({"list", "--topic", "receipts"}).text,
      AllOf(HasSubstr("refused"), HasSubstr("its key waits"), HasSubstr(site.topic() + "/0/7")));
  const json rows =
      json::parse(outbox({"list", "--topic", "receipts", "--limit", "2", "--json"}).text);
  EXPECT_EQ(rows.at("next"), 2);
  EXPECT_EQ(rows.at("records")[1].at("record_key"), (json{{"text", "k1"}}));
  const json state = json::parse(outbox({"list", "--json"}).text);
  EXPECT_EQ(state.at("unsent"), 3);
  EXPECT_EQ(state.at("halts")[0].at("decisions"), "retry, skip");
}

TEST_F(OutboxCommands, ShowEscapesARecordAndGivesItsBytes) {
  const Said shown = outbox({"show", "2"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_THAT(shown.text, AllOf(HasSubstr("payload          \"two\\x1b[2J\""),
                                HasSubstr("header           \"raw\": \"\\xff\""),
                                HasSubstr("header           \"none\": null"),
                                HasSubstr("by " + site.topic() + "/0/7 (group " + site.group() +
                                          ", generation 1)"),
                                HasSubstr("hapax explain -c " + quoted_config() + " ")));
  EXPECT_EQ(outbox({"show", "3", "--payload"}).text, "\xff");
  const json record = json::parse(outbox({"show", "3", "--json"}).text);
  EXPECT_EQ(record.at("payload"), (json{{"base64", "/w=="}}));
  EXPECT_EQ(record.at("headers")[2], (json{{"name", "none"}, {"value", nullptr}}));
  const Said gone = outbox({"show", "99"});
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(gone.text, HasSubstr("has no unsent record 99"));
}

// It may have become that since the operator read the list, and some records may be in Kafka.
TEST_F(OutboxCommands, RetryAsksIfKafkaMayHaveTheRecords) {
  halt("NULL", "NULL");
  site.database().run("UPDATE hapax.outbox_halts SET reason = 'records_lost'");
  const Said asked = decide({"retry", "receipts"});
  EXPECT_EQ(asked.code, 2) << "there is no terminal to ask on";
  EXPECT_THAT(asked.text, AllOf(HasSubstr("topic receipts  records_lost"),
                                HasSubstr("Kafka may have some of these records")));
  EXPECT_EQ(site.database().count("SELECT count(*) FROM hapax.outbox_halts WHERE ended_at IS NULL"),
            1);
  EXPECT_EQ(decide({"retry", "receipts", "--yes"}).code, 0);
  EXPECT_EQ(site.database().count("SELECT count(*) FROM hapax.outbox_halts WHERE ended_at IS NULL"),
            0);
}

TEST_F(OutboxCommands, RetryWithANewClusterAsksAndForgetsTheFormer) {
  halt("NULL", "NULL");
  site.database().run("INSERT INTO hapax.outbox_clusters VALUES ('" + site.group() + "', 'first')");
  EXPECT_EQ(decide({"retry", "receipts", "--new-cluster"}).code, 2);
  EXPECT_THAT(decide({"retry", "receipts", "--new-cluster", "--dry-run"}).text,
              HasSubstr("the group's records went to Kafka cluster first"));
  EXPECT_EQ(site.database().count("SELECT count(*) FROM hapax.outbox_clusters"), 1);
  EXPECT_EQ(decide({"retry", "receipts", "--new-cluster", "--yes"}).code, 0);
  EXPECT_EQ(site.database().count("SELECT count(*) FROM hapax.outbox_clusters"), 0);
  EXPECT_EQ(site.database().value("SELECT facts ->> 'forgotten_cluster' FROM hapax.operator_log"),
            "first");
}

TEST_F(OutboxCommands, SkipAsksAndRemovesAndRetryEndsTheHalt) {
  halt("1", "'k1'");
  EXPECT_THAT(decide({"skip", "3", "--yes"}).text, HasSubstr("record 3 of receipts is not halted"));
  const Said asked = decide({"skip", "1"});
  EXPECT_EQ(asked.code, 2) << "there is no terminal to ask on";
  EXPECT_THAT(decide({"skip", "1", "--dry-run"}).text,
              AllOf(HasSubstr("halt 1  record 1 of receipts (key \"k1\")  record_refused"),
                    HasSubstr("dry run: nothing was changed")));
  EXPECT_EQ(site.database().count("SELECT count(*) FROM hapax.outbox"), 3);
  const json skipped = json::parse(decide({"skip", "1", "--yes", "--json"}).text);
  EXPECT_EQ(skipped.at("records")[0].at("payload"), (json{{"text", "one"}}));
  EXPECT_EQ(skipped.at("dry_run"), false);
  EXPECT_EQ(site.database().count("SELECT count(*) FROM hapax.outbox"), 2);
  EXPECT_EQ(site.database().value("SELECT who, action, why FROM hapax.operator_log"),
            "ann|outbox skip|a test");
  halt("NULL", "NULL");
  EXPECT_THAT(decide({"retry", "2"}).text,
              AllOf(HasSubstr("2 is not halted"), HasSubstr("topic receipts  record_refused")));
  const Said retried = decide({"retry", "receipts"});
  EXPECT_EQ(retried.code, 0) << retried.text;
  EXPECT_THAT(retried.text, HasSubstr("topic receipts  record_refused since"));
  EXPECT_EQ(decide({"retry", "receipts"}).code, 1);
}

// Else an operator who skipped what Kafka has, after marker_lost, would not type `retry`.
TEST_F(OutboxCommands, SkipAndRetryTellWhatIsStillHalted) {
  record("k1", "three");
  halt("1", "'k1'");
  EXPECT_THAT(decide({"skip", "2", "--yes"}).text,
              AllOf(HasSubstr("skipped; these halts still hold records up:\nHALT  record 1 of "
                              "receipts (key \"k1\")"),
                    Not(HasSubstr("goes on"))));
  halt("NULL", "NULL");
  const Said again = decide({"retry", "1"});
  EXPECT_EQ(again.code, 0) << again.text;
  EXPECT_THAT(again.text,
              AllOf(Not(HasSubstr("within a second")),
                    HasSubstr("these halts still hold records up:\nHALT  topic receipts halted"),
                    HasSubstr("end it: hapax outbox retry -c " + quoted_config() +
                              " --url \"$OPERATOR\" receipts --why")));
  EXPECT_THAT(decide({"skip", "3", "--yes"}).text, HasSubstr("HALT  topic receipts"));
  EXPECT_THAT(decide({"retry", "receipts"}).text, HasSubstr("sends it again within a second"));
}

TEST_F(OutboxCommands, WithoutTheOperatorsRightsChangeNothingAndNameThem) {
  halt("1", "'k1'");
  const Said said = outbox({"retry", "1", "--why", "a test"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr("It needs the operator's rights"));
}

TEST_F(OutboxCommands, StatusExitsWith1WhileTheOutboxIsHalted) {
  const Said well = hapax({"status"}, config());
  EXPECT_EQ(well.code, 0) << well.text;
  EXPECT_THAT(well.text, HasSubstr("outbox: 3 unsent, the oldest for"));
  halt("1", "'k1'");
  const Said halted = hapax({"status"}, config());
  EXPECT_EQ(halted.code, 1);
  EXPECT_THAT(halted.text, AllOf(HasSubstr("HALT  record 1 of receipts"),
                                 HasSubstr("hapax outbox retry -c " + quoted_config())));
  EXPECT_EQ(json::parse(hapax({"status", "--json"}, config()).text).at("outbox").at("unsent"), 3);
  EXPECT_THAT(hapax({"check"}, config()).text, HasSubstr("warn  halt: record 1 of receipts"));
}

// Both ways: what a message has published, and the message behind a record.
TEST(OutboxStory, IsToldFromTheMessageAndFromTheRecord) {
  Site site = Site::on_mock_cluster(1);
  const std::string receipts = "receipts-of-" + site.topic();
  Site::mock_cluster().create_topic(receipts, 1);
  const json publish = {{"publish", {{"topics", {receipts}}}}};
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 2);
  const auto worker = site.worker("w", publish);
  site.await_no_lag();
  site.database().run(
      "INSERT INTO hapax.outbox (group_id, topic, payload, headers, idempotency_key, source_topic, "
      "source_generation, source_partition, source_offset) VALUES ('" +
      site.group() + "', '" + receipts + "', 'paid', '[]', 'key 1', '" + site.topic() +
      "', 1, 0, 1)");
  site.await("SELECT count(*) FROM hapax.outbox", "0");
  const std::string place = site.topic() + "/0/1";
  const std::string origin = site.group() + "/" + site.topic() + "/1/0/1";
  EXPECT_THAT(hapax({"explain", place}, worker->config()).text,
              AllOf(HasSubstr("nothing of it is unsent"), HasSubstr("hapax-origin: " + origin),
                    HasSubstr(receipts)));
  const Said back = hapax({"explain", receipts + "/0/0"}, worker->config());
  EXPECT_EQ(back.code, 0) << back.text;
  EXPECT_THAT(back.text, AllOf(HasSubstr(receipts + "/0/0: published by " + place + " of group " +
                                         site.group() + " (generation 1), idempotency-key key 1"),
                               HasSubstr(place + ": completed")));
  const json told =
      json::parse(hapax({"explain", receipts + "/0/0", "--json"}, worker->config()).text);
  EXPECT_EQ(told.at("published_by").at("offset"), 1);
  EXPECT_EQ(told.at("message").at("verdict"), "completed");
  EXPECT_THAT(hapax({"explain", receipts + "/0/1"}, worker->config()).text,
              HasSubstr("Kafka has no record there"));
  producer.send({receipts, "by hand"});
  EXPECT_THAT(hapax({"explain", receipts + "/0/1"}, worker->config()).text,
              HasSubstr("no outbox has sent this record"));
  expect_leaves(*worker);
  site.database().run(
      "INSERT INTO hapax.outbox (group_id, topic, payload, headers, idempotency_key, source_topic, "
      "source_generation, source_partition, source_offset) VALUES ('" +
      site.group() + "', '" + receipts + "', 'paid', '[]', 'key 2', '" + site.topic() +
      "', 1, 0, 1)");
  const json waiting = json::parse(hapax({"explain", place, "--json"}, worker->config()).text);
  EXPECT_EQ(waiting.at("published").at("unsent")[0].at("idempotency_key"), "key 2");
  EXPECT_THAT(hapax({"explain", place}, worker->config()).text,
              HasSubstr("idempotency-key key 2; hapax outbox show 2"));
  site.database().run(
      "BEGIN; SELECT set_config('hapax.removes', 'skipped', true); DELETE FROM hapax.outbox; "
      "COMMIT");
  EXPECT_THAT(hapax({"explain", place}, worker->config()).text,
              HasSubstr("Or an operator skipped it: 1 records of the group were, and "
                        "hapax.operator_log has them"));
}

// What waits is told though nothing else is kept of its message: by position, after retention.
class StoryWithoutAKey : public testing::TestWithParam<const char*> {};

TEST_P(StoryWithoutAKey, TellsWhatIsUnsent) {
  Site site = Site::on_mock_cluster(1);
  json publish = {{"publish", {{"topics", {"receipts"}}}}};
  if (GetParam() == std::string("position")) publish["route"] = {{"key", "position"}};
  sandbox::TemporaryFolder folder("story");
  const std::filesystem::path config = folder.path() / "w.json";
  std::ofstream(config) << site.options("w", publish).config;
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 1);
  const std::string place = site.topic() + "/0/0";
  EXPECT_THAT(hapax({"explain", place}, config).text, Not(HasSubstr("published ")));
  site.database().run(
      "INSERT INTO hapax.outbox (group_id, topic, headers, idempotency_key, source_topic, "
      "source_generation, source_partition, source_offset) VALUES ('" +
      site.group() + "', 'receipts', '[]', 'key 1', '" + site.topic() + "', 1, 0, 0)");
  EXPECT_THAT(hapax({"explain", place}, config).text,
              AllOf(HasSubstr("unsent       record 1 for receipts, idempotency-key key 1"),
                    HasSubstr("hapax-origin: " + site.group() + "/" + site.topic() + "/1/0/0")));
}

INSTANTIATE_TEST_SUITE_P(Each, StoryWithoutAKey, testing::Values("position", "expired"));

}  // namespace
}  // namespace hapax::support
