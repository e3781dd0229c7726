// Records that Kafka does not take, and topics that change while records wait. At worst a key or a
// topic waits for an operator, with a clear sentence. Nothing is lost or doubled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/kafka_admin.hpp"
#include "support/read_records.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// A worker that may publish to two topics of one partition each.
struct Publishing {
  explicit Publishing(bool with_transactions = false, std::string at = shared_kafka().bootstrap())
      : transactions(with_transactions), bootstrap(std::move(at)) {
    for (const std::string& topic : {a, b}) create_topic(bootstrap, topic, 1);
    if (bootstrap != site.bootstrap()) create_topic(bootstrap, site.topic(), 1);
  }

  std::unique_ptr<WorkerProcess> worker(const std::string& crash_at = {}) {
    return site.worker("w",
                       {{"kafka", {{"bootstrap.servers", bootstrap}}},
                        {"publish", {{"topics", {a, b}}, {"transactions", transactions}}},
                        {"route", {{"handler", "publishing"}}}},
                       crash_at);
  }

  void pay(int number, const json& records) {
    Producer(bootstrap).send(site.payment(number, {{"publish", records}}));
  }

  // Waits until the outbox holds nothing but these.
  void await_left(const std::string& values) {
    site.await(
        "SELECT coalesce(string_agg(left(convert_from(payload, 'UTF8'), 9), ' ' ORDER BY id), '') "
        "FROM hapax.outbox",
        values);
  }

  std::vector<std::string> values(const std::string& topic) {
    std::vector<std::string> values;
    for (const Incoming& record : read_records(bootstrap, topic, 0))
      values.push_back(record.payload->substr(0, 9));
    return values;
  }

  std::string halts() {
    return site.database().value(
        "SELECT concat_ws(' ', topic, convert_from(record_key, 'UTF8'), reason, detail) "
        "FROM hapax.outbox_halts WHERE ended_at IS NULL");
  }

  void decide(const std::string& decision) {
    site.database().run("UPDATE hapax.outbox_halts SET ended_at = now(), decision = '" + decision +
                        "' WHERE ended_at IS NULL");
  }

  Site site{1};
  bool transactions;
  std::string bootstrap;
  const std::string a = site.topic() + ".a", b = site.topic() + ".b";
};

class OutboxBadInputOf : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Transactions, OutboxBadInputOf, testing::Bool(),
                         [](const auto& test) { return test.param ? "On" : "Off"; });

TEST_P(OutboxBadInputOf, NullsAndBytesAndLargeRecordsArriveAsTheyWere) {
  HAPAX_NEEDS_KAFKA();
  Publishing p(GetParam());
  const auto worker = p.worker();
  const auto header = [](const char* name, const json& bytes) {
    return json::array({name, bytes});
  };
  p.pay(0, json::array({{{"topic", p.a}},
                        {{"topic", p.a}, {"key", ""}, {"value", ""}},
                        {{"topic", p.a}, {"key", "k"}, {"bytes", 900'000}},
                        {{"topic", p.a}, {"key", "k"}, {"bytes", 900'001}},
                        {{"topic", p.a},
                         {"value", "h"},
                         {"headers", json::array({header("n", {255, 0, 128}), header("n", nullptr),
                                                  header("n", json::array()),
                                                  header("", json::array({65}))})}}}));
  p.site.await_booked(1);
  p.await_left("");
  const auto records = read_records(p.bootstrap, p.a, 0);
  ASSERT_EQ(records.size(), 5U);
  EXPECT_EQ(records[0].key, std::nullopt);
  EXPECT_EQ(records[0].payload, std::nullopt);
  EXPECT_EQ(records[1].key, "");
  EXPECT_EQ(records[1].payload, "");
  EXPECT_EQ(records[2].payload->size(), 900'000U);
  EXPECT_EQ(records[3].payload->size(), 900'001U);
  using Headers = std::vector<std::pair<std::string, std::optional<std::string>>>;
  EXPECT_EQ(Headers(records[4].headers.begin(), records[4].headers.begin() + 4),
            (Headers{{"n", std::string("\xff\0\x80", 3)}, {"n", {}}, {"n", ""}, {"", "A"}}));
  expect_leaves(*worker);
}

// The message waits as a dead letter with the reason; nothing of it takes effect.
TEST(OutboxBadInput, ARecordThatTheTopicNeverTakesIsRefusedInTheHandler) {
  HAPAX_NEEDS_KAFKA();
  Publishing p;
  const auto worker = p.worker();
  p.pay(0, json::array(
               {{{"topic", p.a}, {"value", "first"}}, {{"topic", p.a}, {"bytes", 1'100'000}}}));
  p.pay(1, json::array({{{"topic", p.a}, {"value", "second"}}}));
  p.site.await_booked(1);
  p.await_left("");
  EXPECT_THAT(p.site.database().value("SELECT reason, error FROM hapax.dead_letters"),
              HasSubstr("rejected|publish: the record may have 110"));
  EXPECT_THAT(p.values(p.a), ElementsAre("second"));
  expect_leaves(*worker);
}

TEST_P(OutboxBadInputOf, ATopicThatTakesLessThanBeforeStallsOneKeyUntilRetry) {
  HAPAX_NEEDS_KAFKA();
  Publishing p(GetParam());
  const auto worker = p.worker("outbox_halted:1");
  p.site.await_no_lag();
  worker->await("outbox_taken");
  configure_topic(p.bootstrap, p.a, {{"max.message.bytes", "3000"}});
  json records = json::array();
  for (int i = 0; i < 40; ++i)
    records.push_back(
        {{"topic", p.a}, {"key", "k" + std::to_string(i % 10)}, {"value", std::to_string(i)}});
  records[13].erase("value");
  records[13]["bytes"] = 5000;
  p.pay(0, records);
  EXPECT_EQ(worker->ended().signal, SIGKILL) << "it dies with the halt committed";
  worker->start_again();
  p.await_left("xxxxxxxxx 23 33");
  EXPECT_THAT(p.halts(), HasSubstr(p.a + " k3 record_refused Broker: Message size too large"));
  p.pay(1, json::array({{{"topic", p.a}, {"key", "k3"}, {"value", "later"}},
                        {{"topic", p.a}, {"key", "k4"}, {"value", "other"}},
                        {{"topic", p.b}, {"key", "k3"}, {"value", "elsewhere"}}}));
  p.await_left("xxxxxxxxx 23 33 later");
  // Retried in vain, it halts again; nothing passes it.
  p.decide("retry");
  p.site.await("SELECT count(*), count(ended_at) FROM hapax.outbox_halts", "2|1");
  p.await_left("xxxxxxxxx 23 33 later");
  configure_topic(p.bootstrap, p.a, {});
  p.decide("retry");
  p.await_left("");
  std::vector<std::string> wanted;
  for (int i = 0; i < 40; ++i)
    if (i % 10 != 3 || i == 3) wanted.push_back(std::to_string(i));
  wanted.insert(wanted.end(), {"other", "xxxxxxxxx", "23", "33", "later"});
  // The kill may repeat what was acknowledged and not removed yet.
  std::vector<std::string> first;
  for (const std::string& value : p.values(p.a))
    if (std::ranges::find(first, value) == first.end()) first.push_back(value);
  EXPECT_EQ(first, wanted);
  if (p.transactions) {
    EXPECT_EQ(p.values(p.a).size(), wanted.size()) << "something came twice";
  }
  EXPECT_THAT(p.values(p.b), ElementsAre("elsewhere"));
  expect_leaves(*worker);
}

// The first batch of a producer is refused, while the second one would be small enough.
TEST(OutboxBadInput, ARefusedRecordIsNotPassedByTheBatchBehindIt) {
  HAPAX_NEEDS_KAFKA();
  Publishing p;
  const auto worker = p.worker();
  worker->await("outbox_taken");
  configure_topic(p.bootstrap, p.a, {{"max.message.bytes", "300000"}});
  json records = json::array({{{"topic", p.a}, {"key", "k"}, {"bytes", 400'000}}});
  for (int i = 0; i < 20; ++i)
    records.push_back(
        {{"topic", p.a}, {"key", "k"}, {"value", std::to_string(i) + std::string(20'000, ' ')}});
  p.pay(0, records);
  worker->await("outbox_halted", {{"topic", p.a}, {"reason", "record_refused"}});
  EXPECT_EQ(end_offset(p.bootstrap, p.a, 0), 0);
  configure_topic(p.bootstrap, p.a, {});
  p.decide("retry");
  p.await_left("");
  std::vector<std::string> wanted = {"xxxxxxxxx"};
  for (int i = 0; i < 20; ++i) wanted.push_back((std::to_string(i) + "         ").substr(0, 9));
  EXPECT_EQ(p.values(p.a), wanted);
  expect_leaves(*worker);
}

// As `hapax outbox skip` decides: the record goes, its successors come.
TEST(OutboxBadInput, ASkippedRecordLetsItsKeyGoOn) {
  HAPAX_NEEDS_KAFKA();
  Publishing p;
  const auto worker = p.worker();
  worker->await("outbox_taken");
  configure_topic(p.bootstrap, p.a, {{"max.message.bytes", "3000"}});
  p.pay(0, json::array({{{"topic", p.a}, {"key", "k"}, {"bytes", 5000}},
                        {{"topic", p.a}, {"key", "k"}, {"value", "next"}}}));
  worker->await("outbox_halted", {{"topic", p.a}, {"reason", "record_refused"}});
  p.site.database().run(
      "DELETE FROM hapax.outbox o USING hapax.outbox_halts h "
      "WHERE h.ended_at IS NULL AND h.row_id = o.id; "
      "UPDATE hapax.outbox_halts SET ended_at = now(), decision = 'skip'");
  p.await_left("");
  EXPECT_THAT(p.values(p.a), ElementsAre("next"));
  expect_leaves(*worker);
}

TEST_P(OutboxBadInputOf, ATopicThatIsDeletedWaitsAloneUntilItIsMadeAgain) {
  HAPAX_NEEDS_KAFKA();
  Publishing p(GetParam());
  const auto worker = p.worker();
  p.pay(0, json::array({{{"topic", p.a}, {"value", "before"}}, {{"topic", p.b}, {"value", "0"}}}));
  p.site.await_booked(1);
  p.await_left("");
  delete_topic(p.bootstrap, p.a);
  p.pay(1, json::array({{{"topic", p.a}, {"value", "1"}}, {{"topic", p.b}, {"value", "1"}}}));
  p.site.await_booked(2);  // two messages of different keys have no order
  p.pay(2, json::array({{{"topic", p.a}, {"value", "2"}}, {{"topic", p.b}, {"value", "2"}}}));
  // With transactions a batch may be in doubt, and its marker is gone with the topic.
  const json halted =
      p.transactions ? json{{"topic", p.a}} : json{{"topic", p.a}, {"reason", "topic_refused"}};
  worker->await("outbox_halted", halted, 1, std::chrono::seconds(90));
  p.await_left("1 2");
  EXPECT_THAT(p.halts(), HasSubstr("Kafka has no such topic"));
  EXPECT_THAT(p.values(p.b), ElementsAre("0", "1", "2"));
  create_topic(p.bootstrap, p.a, 1);
  p.decide("retry");
  p.await_left("");
  EXPECT_THAT(p.values(p.a), ElementsAre("1", "2"));
  expect_leaves(*worker);
}

TEST(OutboxBadInput, ATopicThatMayNotBeWrittenAnyMoreWaitsAlone) {
  HAPAX_NEEDS_KAFKA();
  KafkaServer kafka(
      {{"authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
       {"allow.everyone.if.no.acl.found", "true"},
       {"group.min.session.timeout.ms", "1000"}});
  Publishing p(false, kafka.bootstrap());
  const auto worker = p.worker();
  p.pay(0, json::array({{{"topic", p.a}, {"value", "0"}}}));
  p.site.await_booked(1);
  p.await_left("");
  deny_write(p.bootstrap, p.a);
  p.pay(1, json::array({{{"topic", p.a}, {"value", "1"}}, {{"topic", p.b}, {"value", "1"}}}));
  worker->await("outbox_halted", {{"topic", p.a}, {"reason", "topic_refused"}});
  EXPECT_THAT(p.halts(), HasSubstr("Topic authorization failed"));
  p.pay(2, json::array({{{"topic", p.a}, {"value", "2"}}, {{"topic", p.b}, {"value", "2"}}}));
  p.await_left("1 2");
  allow_write(p.bootstrap, p.a);
  p.decide("retry");
  p.await_left("");
  EXPECT_THAT(p.values(p.a), ElementsAre("0", "1", "2"));
  EXPECT_THAT(p.values(p.b), ElementsAre("1", "2"));
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
