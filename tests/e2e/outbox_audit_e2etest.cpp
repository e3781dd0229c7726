// An auditor who follows published records across two groups: each is accounted for in PostgreSQL,
// is in the topic, and leads back to its message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/chain.hpp"
#include "support/command.hpp"
#include "support/kafka_admin.hpp"
#include "support/read_records.hpp"

namespace hapax::support {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kAuditedPayments = 60;

class OutboxAudit : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    HAPAX_NEEDS_KAFKA();
    chain_ = std::make_unique<Chain>();
    payer_ = chain_->payer("payer", {}, {{"publish", {{"transactions", GetParam()}}}});
    receiver_ = chain_->receiver();
    chain_->pay(0, kAuditedPayments);
    chain_->await_receipts(kAuditedPayments);
    chain_->await_sent();
    chain_->site().await_no_lag();
    chain_->expect_exact(kAuditedPayments);
    expect_leaves(*payer_);
    expect_leaves(*receiver_);
  }
  Said audit(const std::string& topic, const WorkerProcess& of,
             std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"audit", "--topic", topic});
    return hapax(more, of.config());
  }
  Said audit_receipts(std::vector<std::string> more = {}) const {
    return audit(chain_->receipts(), *payer_, std::move(more));
  }
  test::Database& database() const { return chain_->site().database(); }

  // The first record of the topic, once more.
  void send_again(const std::optional<std::string>& payload = {}) const {
    for (int partition = 0; partition < 3; ++partition)
      for (const Incoming& first :
           read_records(chain_->site().bootstrap(), chain_->receipts(), partition)) {
        Producer producer(chain_->site().bootstrap());
        producer.send({.topic = chain_->receipts(),
                       .payload = payload ? payload : first.payload,
                       .key = first.key,
                       .headers = first.headers,
                       .partition = partition});
        return;
      }
  }

  std::unique_ptr<Chain> chain_;
  std::unique_ptr<WorkerProcess> payer_, receiver_;  // have left; their configurations stay
};

TEST_P(OutboxAudit, AccountsForEachRecordFromBothGroups) {
  const Said said = audit_receipts({"--json"});
  EXPECT_EQ(said.code, 0) << said.text;
  const json told = json::parse(said.text);
  EXPECT_EQ(told.at("outbound").at("missing"), 0);
  int records = 0;
  for (const json& one : told.at("outbound").at("partitions"))
    records += one.at("records").get<int>() - one.at("repeats").get<int>();
  EXPECT_EQ(records, kAuditedPayments);
  const json& row = told.at("published").at("topics").at(0);
  EXPECT_EQ(row.at("published"), kAuditedPayments);
  EXPECT_EQ(row.at("sent"), kAuditedPayments);
  EXPECT_EQ(row.at("unsent"), 0);
  EXPECT_THAT(audit_receipts().text, AllOf(HasSubstr("each record that was sent is there"),
                                           HasSubstr("every published record is accounted for")));
  const Said payments = audit(chain_->site().topic(), *payer_);
  EXPECT_EQ(payments.code, 0) << payments.text;
  EXPECT_THAT(payments.text, AllOf(HasSubstr("every offset is accounted for"),
                                   HasSubstr("every published record is accounted for")));
  const Said received = audit(chain_->receipts(), *receiver_);
  EXPECT_EQ(received.code, 0) << received.text;
  EXPECT_THAT(received.text, HasSubstr("every offset is accounted for"));
}

TEST_P(OutboxAudit, FailsIfARowWentUnsent) {
  database().run(
      "INSERT INTO hapax.outbox (group_id, topic, headers, idempotency_key, source_topic, "
      "source_generation, source_partition, source_offset) VALUES ('" +
      chain_->site().group() + "', '" + chain_->receipts() + "', '[]', 'x', 's', 1, 0, 0)");
  EXPECT_EQ(audit_receipts().code, 0) << "it waits";
  database().run("DELETE FROM hapax.outbox");
  for (const std::string& topic : {chain_->receipts(), chain_->site().topic()}) {
    const Said said = audit(topic, *payer_);
    EXPECT_EQ(said.code, 1);
    EXPECT_THAT(said.text,
                AllOf(HasSubstr("UNACCOUNTED  " + chain_->receipts() + "  1 records were removed"),
                      HasSubstr("neither sent nor skipped: role ")));
  }
}

TEST_P(OutboxAudit, FailsIfKafkaLacksARecordThatItNeedNotHaveDeleted) {
  const std::string& kafka = chain_->site().bootstrap();
  for (int partition = 0; partition < 3; ++partition)
    if (end_offset(kafka, chain_->receipts(), partition) > 0)
      delete_records(kafka, chain_->receipts(), partition, 1);
  const Said shortened = audit_receipts();
  EXPECT_EQ(shortened.code, 0) << shortened.text;
  EXPECT_THAT(shortened.text, HasSubstr("not compared with the count of sent records: Kafka has "
                                        "deleted the beginning"));
  delete_topic(kafka, chain_->receipts());
  create_topic(kafka, chain_->receipts(), 3);
  const Said made_again = audit_receipts();
  EXPECT_EQ(made_again.code, 1);
  EXPECT_THAT(made_again.text, HasSubstr("MISSING  60 records that Kafka has acknowledged"));
  EXPECT_EQ(audit_receipts({"--from", "0"}).code, 0) << "a part cannot tell";
}

// Without transactions consumers may see a repeat, but an equal one.
TEST_P(OutboxAudit, TellsOfRepeats) {
  send_again();
  const Said equal = audit_receipts();
  EXPECT_EQ(equal.code, GetParam() ? 1 : 0) << equal.text;
  EXPECT_EQ(equal.text.find("REPEATS  " + chain_->receipts()) != std::string::npos, GetParam());
  send_again("another");
  const Said other = audit_receipts();
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.text, HasSubstr("DIFFERS  " + chain_->receipts()));
}

// Kafka has lost one record, and another one comes again.
TEST_P(OutboxAudit, DoesNotTakeARepeatForARecordThatIsMissing) {
  const std::string& kafka = chain_->site().bootstrap();
  std::vector<Incoming> all;
  for (int partition = 0; partition < 3; ++partition)
    for (Incoming& one : read_records(kafka, chain_->receipts(), partition))
      all.push_back(std::move(one));
  delete_topic(kafka, chain_->receipts());
  create_topic(kafka, chain_->receipts(), 3);
  all.front() = all.back();
  Producer producer(kafka);
  for (const Incoming& one : all)
    producer.send({.topic = chain_->receipts(),
                   .payload = one.payload,
                   .key = one.key,
                   .headers = one.headers,
                   .partition = 0});
  const Said said = audit_receipts();
  EXPECT_EQ(said.code, GetParam() ? 1 : 0) << said.text;
  EXPECT_THAT(said.text, HasSubstr("not compared with the count of sent records: up to 1 may be "
                                   "missing, because records come again"));
  EXPECT_TRUE(json::parse(audit_receipts({"--json"}).text).at("outbound").at("missing").is_null());
}

TEST_P(OutboxAudit, DoesNotTakeARecordFromBeforeTheCountsForOneThatWasCounted) {
  database().run(
      "CREATE TEMP TABLE counts AS SELECT DISTINCT ON (what) * FROM hapax.outbox_counts; "
      "TRUNCATE hapax.outbox_counts; INSERT INTO hapax.outbox_counts (group_id, topic, what, "
      "records) SELECT group_id, topic, what, 50 FROM counts");
  const Said said = audit_receipts();
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text, HasSubstr("as many records as were sent are there, and 10 beside: sent "
                                   "while this ran, or before they were counted"));
}

// Kafka has them, and shows them to no consumer with read_committed yet. (With transactions the
// relay waits for that.)
TEST_P(OutboxAudit, MissesNoRecordThatATransactionOfAnotherHides) {
  if (GetParam()) return;
  const std::string& kafka = chain_->site().bootstrap();
  Producer other(kafka, {{"transactional.id", "other of " + chain_->receipts()},
                         {"transaction.timeout.ms", "300000"}});
  other.begin();
  for (int partition = 0; partition < 3; ++partition)
    other.produce({.topic = chain_->receipts(), .payload = "other", .partition = partition});
  other.flush();
  const auto again = chain_->payer("again");
  chain_->pay(kAuditedPayments, 10);
  chain_->site().await_booked(kAuditedPayments + 10);
  chain_->await_sent();
  expect_leaves(*again);
  const Said hidden = audit_receipts();
  EXPECT_EQ(hidden.code, 0) << hidden.text;
  EXPECT_THAT(hidden.text, HasSubstr("not compared with the count of sent records: an open "
                                     "transaction hides the end of partition "));
  other.commit();
  const Said seen = audit_receipts();
  EXPECT_EQ(seen.code, 0) << seen.text;
  EXPECT_THAT(seen.text, HasSubstr("each record that was sent is there"));
}

// From the second group's key to the record, from the record to the message, and back.
TEST_P(OutboxAudit, AnOperationLeadsBackToItsOriginAndOnToItsRecord) {
  for (int partition = 0; partition < 3; ++partition) {
    const auto records = read_records(chain_->site().bootstrap(), chain_->receipts(), partition);
    if (records.empty()) continue;
    std::string key, origin;
    for (const auto& [name, value] : records[0].headers) {
      if (name == "idempotency-key") key = *value;
      if (name == "hapax-origin") origin = *value;
    }
    const Said by_key = hapax({"explain", "--key", key, "--json"}, receiver_->config());
    EXPECT_EQ(by_key.code, 0) << by_key.text;
    const std::string record = chain_->receipts() + "/" + std::to_string(partition) + "/" +
                               std::to_string(records[0].offset);
    const Said received = hapax({"explain", record, "--json"}, receiver_->config());
    EXPECT_EQ(received.code, 0) << received.text;
    const json by = json::parse(received.text).at("published_by");
    EXPECT_EQ(by.at("group"), chain_->site().group());
    const std::string message = by.at("topic").get<std::string>() + "/" +
                                by.at("partition").dump() + "/" + by.at("offset").dump();
    const Said paid = hapax({"explain", record, "--json"}, payer_->config());
    EXPECT_EQ(json::parse(paid.text).at("message").at("verdict"), "completed");
    const Said story = hapax({"explain", message}, payer_->config());
    EXPECT_EQ(story.code, 0);
    EXPECT_THAT(story.text, AllOf(HasSubstr("nothing of it is unsent"), HasSubstr(origin)));
    return;
  }
  FAIL() << "there is no receipt";
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutTransactions, OutboxAudit, testing::Bool(),
                         [](const auto& test) { return test.param ? "With" : "Without"; });

}  // namespace
}  // namespace hapax::support
