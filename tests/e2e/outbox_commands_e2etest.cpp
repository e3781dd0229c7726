// An operator and a record that a real Kafka refuses: what is seen, and what each decision does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sandbox/temporary_folder.hpp"
#include "support/command.hpp"
#include "support/kafka_admin.hpp"
#include "support/read_records.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Settings = std::map<std::string, std::string>;

struct Outbound {
  explicit Outbound(const Settings& configs) { create_topic(site.bootstrap(), topic, 1, configs); }

  // As a handler leaves it. Random bytes, so that no compression makes it smaller.
  void publish(const std::string& key, int bytes) {
    site.database().run(
        "INSERT INTO hapax.outbox (group_id, topic, record_key, payload, headers, "
        "idempotency_key, source_topic, source_generation, source_partition, source_offset) "
        "SELECT '" +
        site.group() + "', '" + topic + "', '" + key +
        "', string_agg(sha256(n::text::bytea), '') , '[]', 'key', '" + site.topic() +
        "', 1, 0, 0 FROM generate_series(1, " + std::to_string(bytes / 32) + ") n");
  }
  std::string unsent() {
    return site.database().value(
        "SELECT coalesce(string_agg(id::text, ' ' ORDER BY id), '') FROM hapax.outbox");
  }

  Site site{1};
  std::string topic = site.topic() + ".receipts";
  json patch = {{"publish", {{"topics", {topic}}}}};
};

TEST(OutboxOperator, SeesARecordThatKafkaRefusesAndSkipsOrRetriesIt) {
  HAPAX_NEEDS_KAFKA();
  Outbound out(Settings{{"max.message.bytes", "8000"}});
  Site& site = out.site;
  out.publish("k1", 20'000);
  out.publish("k1", 320);
  out.publish("k2", 320);
  const auto worker = site.worker("w", out.patch);
  worker->await("outbox_halted");
  site.await("SELECT count(*) FROM hapax.outbox", "2");
  const Said status = hapax({"status"}, worker->config());
  EXPECT_EQ(status.code, 1);
  EXPECT_THAT(status.text, AllOf(HasSubstr("HALT  record 1 of " + out.topic),
                                 HasSubstr("hapax outbox skip -c")));
  const std::string url = site.database().owner().url;
  EXPECT_EQ(hapax({"outbox", "retry", "1", "--why", "again", "--url", url}, worker->config()).code,
            0);
  worker->await("outbox_halted", {}, 2);
  EXPECT_EQ(out.unsent(), "1 2");
  const Said skipped =
      hapax({"outbox", "skip", "1", "--why", "too large", "--yes", "--url", url}, worker->config());
  EXPECT_EQ(skipped.code, 0) << skipped.text;
  site.await("SELECT count(*) FROM hapax.outbox", "0");
  EXPECT_EQ(read_records(site.bootstrap(), out.topic, 0).size(), 2U);
  EXPECT_EQ(site.database().value("SELECT length(facts->'records'->0->>'payload') FROM "
                                  "hapax.operator_log WHERE action = 'outbox skip'"),
            "40000");
  EXPECT_EQ(hapax({"status"}, worker->config()).code, 0);
  expect_leaves(*worker);
}

TEST(OutboxCheck, TellsOfATopicWhatAWorkerNeedsAndWritesNothing) {
  HAPAX_NEEDS_KAFKA();
  Outbound plain(Settings{{"max.message.bytes", "8000"}});
  const sandbox::TemporaryFolder folder("check");
  const auto config = folder.path() / "worker.json";
  plain.patch["publish"]["topics"].push_back("no-such-topic");
  std::ofstream(config) << plain.site.options("w", plain.patch).config;
  const std::string said = hapax({"check"}, config).text;
  EXPECT_THAT(said, AllOf(HasSubstr("ok    topic " + plain.topic + " of publish.topics: 1 partit"),
                          HasSubstr("records of up to 8000 bytes, cleanup.policy delete"),
                          HasSubstr("ok    writing to " + plain.topic + ": allowed"),
                          HasSubstr("FAIL  topic no-such-topic of publish.topics: does not")));
  EXPECT_EQ(end_offset(plain.site.bootstrap(), plain.topic, 0), 0);

  Outbound compacted(Settings{{"cleanup.policy", "compact"}});
  compacted.patch["publish"]["transactions"] = true;
  std::ofstream(config) << compacted.site.options("w", compacted.patch).config;
  EXPECT_THAT(hapax({"check"}, config).text,
              AllOf(HasSubstr("warn  settings of " + compacted.topic + ": records of up to"),
                    HasSubstr("ok    writing to " + compacted.topic + ": allowed"),
                    HasSubstr("ok    offsets.retention.minutes of Kafka: 10080")));
}

TEST(OutboxCheck, NamesAMissingRightToWrite) {
  HAPAX_NEEDS_KAFKA();
  KafkaServer kafka(
      Settings{{"authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
               {"allow.everyone.if.no.acl.found", "true"}});
  const std::string topic = "receipts";
  create_topic(kafka.bootstrap(), topic, 1);
  Site site(1);
  const sandbox::TemporaryFolder folder("check");
  const auto config = folder.path() / "worker.json";
  std::ofstream(config) << site.options("w", {{"kafka", {{"bootstrap.servers", kafka.bootstrap()}}},
                                              {"publish", {{"topics", {topic}}}}})
                               .config;
  EXPECT_THAT(hapax({"check"}, config).text, HasSubstr("ok    writing to receipts: allowed"));
  deny_write(kafka.bootstrap(), topic);
  const Said denied = hapax({"check"}, config);
  EXPECT_EQ(denied.code, 1);
  EXPECT_THAT(denied.text, AllOf(HasSubstr("FAIL  writing to receipts: "),
                                 HasSubstr("give the user of kafka.* Write on the topic")));
}

TEST(OutboxCheck, TriesTransactionsAndTellsWhatConsumersNeed) {
  HAPAX_NEEDS_KAFKA();
  KafkaServer kafka(
      Settings{{"authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
               {"allow.everyone.if.no.acl.found", "true"},
               {"offsets.retention.minutes", "600"}});
  create_topic(kafka.bootstrap(), "receipts", 1);
  Site site(1);
  const sandbox::TemporaryFolder folder("check");
  const auto config = folder.path() / "worker.json";
  std::ofstream(config) << site.options("w", {{"kafka", {{"bootstrap.servers", kafka.bootstrap()}}},
                                              {"publish",
                                               {{"topics", {"receipts"}}, {"transactions", true}}}})
                               .config;
  EXPECT_THAT(hapax({"check"}, config).text,
              AllOf(HasSubstr("ok    transactions into receipts: allowed"),
                    HasSubstr("isolation.level is read_committed"),
                    HasSubstr("warn  offsets.retention.minutes of Kafka: 600: ")));
  EXPECT_EQ(end_offset(kafka.bootstrap(), "receipts", 0), 0);
  deny_describe_configs(kafka.bootstrap());
  deny_group(kafka.bootstrap(), "hapax-outbox/" + site.group() + "/receipts:check");
  EXPECT_THAT(hapax({"check"}, config).text,
              AllOf(HasSubstr("FAIL  transactions into receipts: "),
                    HasSubstr("Read on the groups, that begin with hapax-outbox/"),
                    Not(HasSubstr("offsets.retention.minutes"))));
}

}  // namespace
}  // namespace hapax::support
