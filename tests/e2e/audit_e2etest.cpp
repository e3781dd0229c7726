// audit and explain on a real Kafka: a topic that holds all that can become of a message.
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>

#include "support/command.hpp"
#include "support/kafka_admin.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using nlohmann::json;

const json kPatch = {{"route", {{"tombstone", "skip"}}}};

// Partition 0, by offset; 0 to 4 are payments 0 to 4.
constexpr int kDuplicateOf1 = 5;
constexpr int kDriftOf2 = 6;
constexpr int kPoison = 7;
constexpr int kTombstone = 8;
constexpr int kFailing = 9;
constexpr int kWithoutKey = 10;
constexpr int kUnread = 11;  // sent when the worker is gone
// Partition 1: 0 to 2 committed, 3 control, 4 and 5 aborted, 6 control, 7 committed, 8 control.
constexpr int kControl = 3;
constexpr int kAborted = 4;

json json_of(const Said& said) { return json::parse(said.text); }

class AuditOfATopic : public testing::Test {
 protected:
  void SetUp() override {
    HAPAX_NEEDS_KAFKA();
    site_ = std::make_unique<Site>(2);
    Producer producer(site_->bootstrap());
    send_plain(producer);
    send_transactions();
    worker_ = site_->worker("w", kPatch);
    site_->await_no_lag();
    expect_leaves(*worker_);
    producer.send(on(0, site_->payment(99)));
  }

  static Outgoing on(int partition, Outgoing record) {
    record.partition = partition;
    return record;
  }

  // As if an operator, or `cause`, had moved the group past messages that no worker read.
  void leave_out_unread(const std::string& cause, const std::string& who) const {
    site_->database().run(
        "INSERT INTO hapax.position_changes (group_id, topic, partition, generation, from_offset, "
        "to_offset, cause, who, why) VALUES ('" +
        site_->group() + "', '" + site_->topic() + "', 0, 1, 11, 12, '" + cause + "', '" + who +
        "', 'not wanted');"
        "UPDATE hapax.checkpoints SET next_offset = 12, highest = 12 WHERE partition = 0");
  }

  void send_plain(Producer& producer) {
    for (int number = 0; number < 5; ++number) producer.produce(on(0, site_->payment(number)));
    producer.produce(on(0, site_->payment(1)));
    producer.produce(on(0, site_->payment(2, {{"amount_minor", 999}})));
    producer.produce(on(0, site_->payment(7, {{"do", "reject"}})));
    Outgoing record = on(0, site_->payment(8));
    record.payload = std::nullopt;
    producer.produce(record);
    producer.produce(on(0, site_->payment(9, {{"do", "fail"}})));
    record = on(0, site_->payment(10));
    record.headers.clear();
    producer.produce(record);
    producer.flush();
  }

  void send_transactions() {
    Producer producer(site_->bootstrap(), {{"transactional.id", site_->topic()}});
    const auto send = [&](std::vector<int> numbers) {
      producer.begin();
      for (const int number : numbers) producer.produce(on(1, site_->payment(number)));
      producer.flush();
    };
    send({20, 21, 22});
    producer.commit();
    send({30, 31});
    producer.abort();
    send({23});
    producer.commit();
  }

  Said audit(std::vector<std::string> more = {"--json"}) const {
    more.insert(more.begin(), {"audit", "--topic", site_->topic()});
    return hapax(more, worker_->config());
  }

  Said explain(std::vector<std::string> more) const {
    more.insert(more.begin(), "explain");
    return hapax(more, worker_->config());
  }
  Said explain(int partition, int offset) const {
    return explain({place(partition, offset), "--json"});
  }
  std::string verdict(int partition, int offset) const {
    return json_of(explain(partition, offset)).at("verdict");
  }
  std::string place(int partition, int offset) const {
    return site_->topic() + "/" + std::to_string(partition) + "/" + std::to_string(offset);
  }

  std::unique_ptr<Site> site_;
  std::unique_ptr<WorkerProcess> worker_;  // has left; its configuration stays
};

// The verdicts that occur, with their counts.
json counts(const json& partition) {
  json found = json::object();
  for (const auto& [name, count] : partition.at("counts").items())
    if (count != 0) found[name] = count;
  return found;
}

TEST_F(AuditOfATopic, AccountsForEveryOffset) {
  const Said said = audit();
  EXPECT_EQ(said.code, 0) << said.text;
  const json partitions = json_of(said).at("partitions");
  ASSERT_EQ(partitions.size(), 2U);
  EXPECT_EQ(counts(partitions[0]), json({{"completed", 5},
                                         {"duplicate", 1},
                                         {"dead_letter", 4},
                                         {"skipped", 1},
                                         {"in_flight", 1}}));
  EXPECT_EQ(partitions[0].at("to"), kUnread + 1);
  EXPECT_EQ(partitions[0].at("checkpoint"), kUnread);
  EXPECT_EQ(counts(partitions[1]), json({{"completed", 4}, {"not_a_message", 5}}));
  EXPECT_EQ(partitions[1].at("to"), 9);
  EXPECT_EQ(json_of(said).at("unaccounted"), json::array());
  EXPECT_NE(audit({}).text.find("every offset is accounted for"), std::string::npos);
}

TEST_F(AuditOfATopic, ProvesNothingOfAGroupThatNeverStartedThere) {
  site_->database().run("DELETE FROM hapax.checkpoints WHERE partition = 1");
  EXPECT_EQ(audit({"--json", "--partition", "0"}).code, 0);
  const Said said = audit({});
  EXPECT_EQ(said.code, 1);
  EXPECT_NE(said.text.find("has never started here"), std::string::npos) << said.text;
  const Said before = audit({"--partition", "1", "--to", "2001-01-01"});
  EXPECT_EQ(before.code, 1) << "the range is empty, the partition is not: " << before.text;
}

TEST_F(AuditOfATopic, ProvesNothingIfThereIsNothingToLookAt) {
  for (const char* const range : {"--from 20261101", "--from 5 --to 5", "--from 1h --to 2h",
                                  "--from 2999-01-01", "--from 1h --to 2001-01-01"}) {
    std::istringstream words(range);
    const Said said = audit({std::istream_iterator<std::string>(words), {}});
    EXPECT_EQ(said.code, 2) << range << ": " << said.text;
  }
  const Said quiet = audit({"--to", "2001-01-01"});
  EXPECT_EQ(quiet.code, 0) << quiet.text;
  EXPECT_NE(quiet.text.find("there is nothing to account for"), std::string::npos) << quiet.text;
  EXPECT_EQ(quiet.text.find("every offset"), std::string::npos) << quiet.text;
  delete_records(site_->bootstrap(), site_->topic(), 0, kTombstone);
  const Said deleted = audit({"--partition", "0", "--to", "4"});
  EXPECT_EQ(deleted.code, 1) << deleted.text;
  EXPECT_NE(deleted.text.find("the log of partition 0 begins at 8"), std::string::npos)
      << deleted.text;
  EXPECT_EQ(audit({"--partition", "0", "--to", "9"}).code, 0);
  site_->database().run("DELETE FROM hapax.checkpoints");
  const Said never = audit({"--to", "2001-01-01"});
  EXPECT_EQ(never.code, 1);
  EXPECT_NE(never.text.find("has never started on this topic"), std::string::npos) << never.text;
}

TEST_F(AuditOfATopic, FindsTheOneOffsetWhoseKeyIsGone) {
  site_->database().run("DELETE FROM hapax.idempotency_keys WHERE key = 'p3'");
  const Said said = audit();
  EXPECT_EQ(said.code, 1) << said.text;
  const json unaccounted = json_of(said).at("unaccounted");
  ASSERT_EQ(unaccounted.size(), 1U) << unaccounted;
  EXPECT_EQ(unaccounted[0].at("partition"), 0);
  EXPECT_EQ(unaccounted[0].at("offset"), 3);
  EXPECT_NE(audit({}).text.find("UNACCOUNTED  " + place(0, 3)), std::string::npos);
  EXPECT_EQ(audit({"--partition", "0", "--from", "4"}).code, 0) << "outside of the range";
  EXPECT_EQ(audit({"--partition", "0", "--from", "3", "--to", "4"}).code, 1);
  EXPECT_EQ(audit({"--to", "2001-01-01"}).code, 0) << "nothing was written before";
  EXPECT_EQ(audit({"--from", "2001-01-01"}).code, 1);
  EXPECT_EQ(audit({"--from", "1h"}).code, 1) << "an hour ago nothing was there";
  EXPECT_EQ(audit({"--to", "1h"}).code, 0);
  EXPECT_EQ(explain(0, 3).code, 1);
  EXPECT_EQ(verdict(0, 3), "unaccounted");
}

TEST_F(AuditOfATopic, IsProofAsLongAsKafkaDeletesOnlyWhatWasSettled) {
  delete_records(site_->bootstrap(), site_->topic(), 0, kTombstone);
  const Said settled = audit();
  EXPECT_EQ(settled.code, 0) << settled.text;
  EXPECT_EQ(json_of(settled).at("partitions")[0].at("from"), kTombstone);
  EXPECT_EQ(verdict(0, 0), "deleted");
  EXPECT_EQ(verdict(0, kPoison), "dead_letter");
  delete_records(site_->bootstrap(), site_->topic(), 0, kUnread + 1);
  const Said unsettled = audit();
  EXPECT_EQ(unsettled.code, 1) << unsettled.text;
  EXPECT_EQ(json_of(unsettled).at("partitions")[0].at("deleted_unsettled"), 1);
  EXPECT_NE(audit({}).text.find("Kafka has deleted 1 offsets"), std::string::npos);
  EXPECT_EQ(audit({"--from", "2001-01-01"}).code, 1) << "a time does not hide what was deleted";
}

TEST_F(AuditOfATopic, EndsBeforeATransactionThatIsStillOpen) {
  Producer producer(site_->bootstrap(), {{"transactional.id", site_->topic() + "-open"}});
  producer.begin();
  producer.send(on(1, site_->payment(50)));  // offset 9
  const Said said = audit();
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_EQ(json_of(said).at("partitions")[1].at("to"), 9);
  EXPECT_EQ(verdict(1, 9), "not_written");
  producer.commit();
  EXPECT_EQ(verdict(1, 9), "in_flight");
}

TEST_F(AuditOfATopic, TakesNoRowOfAnotherGenerationForAMessageOfThis) {
  site_->database().run("UPDATE hapax.checkpoints SET generation = 2 WHERE partition = 0");
  const Said said = audit();
  EXPECT_EQ(said.code, 1) << said.text;
  EXPECT_EQ(counts(json_of(said).at("partitions")[0]),
            json({{"duplicate", 6}, {"skipped", 1}, {"unaccounted", 4}, {"in_flight", 1}}));
}

TEST_F(AuditOfATopic, TellsWhatAnOperatorLeftOut) {
  leave_out_unread("skip", "anna");
  const Said said = audit({});
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_NE(said.text.find("11 to 12 left out by anna"), std::string::npos) << said.text;
  const json story = json_of(explain(0, kUnread));
  EXPECT_EQ(story.at("verdict"), "skipped");
  EXPECT_EQ(story.at("left_out").at("why"), "not wanted");
}

TEST_F(AuditOfATopic, CountsWhatKafkaDeletedBeforeItWasReadThoughTheGroupWentOn) {
  leave_out_unread("log_start", "w");
  delete_records(site_->bootstrap(), site_->topic(), 0, kUnread + 1);
  const Said said = audit();
  EXPECT_EQ(said.code, 1) << said.text;
  EXPECT_EQ(json_of(said).at("partitions")[0].at("deleted_unsettled"), 1);
  const Said before = audit({"--json", "--partition", "0", "--to", "11"});
  EXPECT_EQ(json_of(before).at("partitions")[0].at("deleted_unsettled"), 0);
  EXPECT_EQ(audit({"--from", "2001-01-01"}).code, 1) << "a time does not hide what was deleted";
  site_->database().run("UPDATE hapax.position_changes SET at = '2000-01-01'");
  EXPECT_EQ(audit({"--partition", "0", "--from", "2001-01-01"}).code, 0) << "that was before";
}

TEST_F(AuditOfATopic, IsNotHiddenFromStatusByATopicThatWasDeleted) {
  site_->database().run(
      "INSERT INTO hapax.checkpoints SELECT (jsonb_populate_record(c, '{\"topic\": \"gone\"}')).* "
      "FROM hapax.checkpoints c WHERE partition = 0");
  const Said said = hapax({"status", "--json"}, worker_->config());
  const json status = json_of(said);
  EXPECT_EQ(status.at("kafka_error"), nullptr);
  ASSERT_EQ(status.at("partitions").size(), 3U) << said.text;
  EXPECT_EQ(status.at("partitions")[0].at("topic"), "gone");
  EXPECT_EQ(status.at("partitions")[0].at("end"), nullptr);
  EXPECT_EQ(status.at("partitions")[1].at("end"), kUnread + 1);
  EXPECT_EQ(status.at("partitions")[1].at("lag"), 1);
}

TEST_F(AuditOfATopic, ExplainsEachMessage) {
  EXPECT_EQ(verdict(0, 0), "completed");
  EXPECT_EQ(verdict(0, kTombstone), "skipped");
  EXPECT_EQ(verdict(0, kUnread), "in_flight");
  EXPECT_EQ(verdict(1, kControl), "not_a_message");
  EXPECT_EQ(verdict(1, kAborted), "not_a_message");

  const json duplicate = json_of(explain(0, kDuplicateOf1));
  EXPECT_EQ(duplicate.at("verdict"), "duplicate");
  EXPECT_EQ(duplicate.at("key").at("offset"), 1);
  const auto reason = [&](int offset) -> std::string {
    return json_of(explain(0, offset)).at("dead_letter").at("reason");
  };
  EXPECT_EQ(reason(kDriftOf2), "payload_drift");
  EXPECT_EQ(reason(kPoison), "rejected");
  EXPECT_EQ(reason(kWithoutKey), "missing_key");
  EXPECT_EQ(reason(kFailing), "attempts_exhausted");
  EXPECT_EQ(json_of(explain(0, kFailing)).at("attempts").at("count"), 2);

  const Said text = explain({place(0, kDuplicateOf1)});
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.text.find("a duplicate of " + place(0, 1)), std::string::npos) << text.text;
}

TEST_F(AuditOfATopic, ExplainsAKey) {
  const json story = json_of(explain({"--key", "p2", "--json"}));
  ASSERT_EQ(story.at("keys").size(), 1U);
  EXPECT_EQ(story.at("keys")[0].at("kafka_offset"), 2);
  ASSERT_EQ(story.at("dead_letters").size(), 1U);
  EXPECT_EQ(story.at("dead_letters")[0].at("kafka_offset"), kDriftOf2);
  EXPECT_EQ(explain({"--key", "p2", "--scope", "scripted"}).code, 0);
  const Said elsewhere = explain({"--key", "p2", "--scope", "other"});
  EXPECT_EQ(elsewhere.code, 1);
  EXPECT_NE(elsewhere.text.find("it is stored in scope \"scripted\""), std::string::npos)
      << elsewhere.text;
}

TEST_F(AuditOfATopic, TellsWhatThereIsIfThereIsNothing) {
  const auto says = [](const Said& said, int code, const std::string& what) {
    EXPECT_EQ(said.code, code) << said.text;
    EXPECT_NE(said.text.find(what), std::string::npos) << said.text;
  };
  says(explain({place(0, 12)}), 1, "not_written");
  says(explain({place(2, 0)}), 1, "it has 0 to 1");
  says(explain({"nowhere/0/0"}), 1, "there is: " + site_->topic());
  says(explain({site_->topic()}), 2, "is not TOPIC/PARTITION/OFFSET");
  says(explain({"--key", "nobody"}), 1, "nothing is stored about key");
  says(explain({}), 2, "either");
  says(audit({"--from", "yesterday"}), 2, "is none of: an offset");
}

}  // namespace
}  // namespace hapax::support
