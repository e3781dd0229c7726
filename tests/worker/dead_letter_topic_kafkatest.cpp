// Dead letters in a Kafka topic: what stands there, in which order, and what a death of the
// publisher does to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <utility>

#include "store/operator/migrate.hpp"
#include "support/read_records.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kLetterPartitions = 4;  // of the topic of dead letters
// Those that wait for the relay, and those that it has not sent.
constexpr const char* kUnpublished =
    "SELECT (SELECT count(*) FROM hapax.dead_letters WHERE published_at IS NULL) + "
    "(SELECT count(*) FROM hapax.outbox)";

using Headers = std::vector<std::pair<std::string, std::optional<std::string>>>;

class DeadLetterTopic : public testing::Test {
 protected:
  std::unique_ptr<WorkerProcess> worker(const std::string& name, const std::string& crash_at = {}) {
    if (!std::exchange(is_made_, true)) Site::mock_cluster().create_topic(topic, kLetterPartitions);
    return site.worker(name, {{"route", {{"dead_letter_topic", topic}}}}, crash_at);
  }

  Outgoing rejected(int number) const {
    Outgoing record = site.payment(number, {{"do", "reject"}});
    record.key = "one key";  // so that all are published to one partition
    return record;
  }

  // What stands in the topic; records of one key are in one partition.
  std::vector<Incoming> published() const {
    std::vector<Incoming> all;
    for (int partition = 0; partition < kLetterPartitions; ++partition)
      for (Incoming& record : read_records(site.bootstrap(), topic, partition))
        all.push_back(std::move(record));
    return all;
  }

  static std::optional<std::string> header(const Incoming& record, const std::string& name) {
    const auto found = std::find_if(record.headers.rbegin(), record.headers.rend(),
                                    [&](const auto& header) { return header.first == name; });
    if (found == record.headers.rend()) throw std::runtime_error("no header " + name);
    return found->second;
  }

  std::vector<std::string> ids(const std::vector<Incoming>& records) const {
    std::vector<std::string> ids;
    for (const Incoming& record : records)
      ids.push_back(header(record, "hapax-dead-letter-id").value_or("null"));
    return ids;
  }

  Site site = Site::on_mock_cluster(2);
  std::string topic = site.topic() + ".dead";

 private:
  bool is_made_ = false;
};

TEST_F(DeadLetterTopic, HasTheMessageByteForByteAndWhatBecameOfIt) {
  Outgoing sent = rejected(0);
  sent.payload = std::string("\x00\xff not JSON", 11);
  sent.key = std::string("k\0\xfe", 3);
  sent.headers = {{"idempotency-key", "p0"},
                  {"trace", "one"},
                  {"trace", std::string("\0two", 4)},
                  {"empty", ""},
                  {"null", std::nullopt},
                  {"\xff", std::string("\0\xfe", 2)},
                  {"hapax-sqlstate", "forged"}};
  sent.timestamp_ms = 1'700'000'000'123;
  Outgoing tombstone = site.payment(2);  // to the same partition, so it comes second
  tombstone.payload.reset();
  tombstone.key.reset();
  Producer producer(site.bootstrap());
  producer.send(sent);
  producer.send(tombstone);
  const auto one = worker("one");
  site.await("SELECT count(*) FROM hapax.dead_letters WHERE published_at IS NOT NULL", "2");
  site.await(kUnpublished, "0");

  std::vector<Incoming> records = published();
  ASSERT_EQ(records.size(), 2U);
  if (!records[0].key) std::swap(records[0], records[1]);
  EXPECT_EQ(records[0].payload, sent.payload);
  EXPECT_EQ(records[0].key, sent.key);
  EXPECT_EQ(Headers(records[0].headers.begin(), records[0].headers.begin() + 7), sent.headers);
  EXPECT_EQ(records[1].payload, std::nullopt);
  EXPECT_EQ(records[1].key, std::nullopt);

  const auto row = [&](const std::string& column) {
    return site.database().value("SELECT " + column +
                                 " FROM hapax.dead_letters WHERE kafka_offset = 0");
  };
  EXPECT_EQ(header(records[0], "hapax-dead-letter-id"), row("id"));
  EXPECT_EQ(header(records[0], "hapax-store"), site.database().value("SELECT id FROM hapax.store"));
  EXPECT_EQ(header(records[0], "hapax-group"), site.group());
  EXPECT_EQ(header(records[0], "hapax-original-topic"), site.topic());
  EXPECT_EQ(header(records[0], "hapax-original-partition"), "0");
  EXPECT_EQ(header(records[0], "hapax-original-offset"), "0");
  EXPECT_EQ(header(records[0], "hapax-original-timestamp"), "1700000000123");
  EXPECT_EQ(header(records[0], "hapax-original-timestamp-type"), "create_time");
  EXPECT_EQ(header(records[0], "hapax-reason"), row("reason"));
  EXPECT_EQ(header(records[0], "hapax-error"), row("error"));
  EXPECT_EQ(header(records[0], "hapax-sqlstate"), std::nullopt) << "forged by the message";
  EXPECT_EQ(header(records[0], "hapax-attempts"), row("attempts"));
  EXPECT_EQ(header(records[0], "hapax-handler"), "scripted");
  EXPECT_EQ(header(records[0], "hapax-handler-version"), row("handler_version"));
  EXPECT_EQ(header(records[0], "hapax-given-up-at")->substr(0, 19),
            row("to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS')"));
  EXPECT_EQ(header(records[0], "hapax-first-failed-at")->back(), 'Z');
  EXPECT_EQ(header(records[0], "hapax-left-out"), std::nullopt);
  expect_leaves(*one);
  EXPECT_EQ(site.database().count("SELECT count(*) FROM hapax.leases WHERE name LIKE 'outbox of %' "
                                  "AND until > clock_timestamp()"),
            0)
      << "another worker's relay would wait for its end";
}

TEST_F(DeadLetterTopic, HasEachLetterOnceByIdThoughTwoWorkersMayPublish) {
  constexpr int kLetters = 150;  // more than are read at once
  Producer producer(site.bootstrap());
  for (int n = 0; n < kLetters; ++n) producer.produce(rejected(n));
  producer.flush();
  // One letter is from before the setting, and one has ended, so no operator has to look at it.
  const auto quiet = site.worker("quiet", {{"route", {{"breaker", 0}}}});
  site.await("SELECT count(*) FROM hapax.dead_letters", std::to_string(kLetters));
  EXPECT_EQ(site.database().value(kUnpublished), std::to_string(kLetters));
  expect_leaves(*quiet);
  site.database().run(
      "UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'discarded' WHERE id = 3");

  const auto one = worker("one");
  const auto two = worker("two");
  site.await(kUnpublished, "1");
  std::vector<std::string> wanted;
  for (int id = 1; id <= kLetters; ++id)
    if (id != 3) wanted.push_back(std::to_string(id));
  EXPECT_EQ(ids(published()), wanted);
  EXPECT_EQ(site.database().value("SELECT name FROM hapax.leases WHERE name <> 'retention'"),
            "outbox of " + site.group());
  EXPECT_EQ(one->count("outbox_delayed") + two->count("outbox_delayed"), 0U);
  expect_leaves(*one);
  expect_leaves(*two);
}

TEST_F(DeadLetterTopic, RepeatsUnderTheSameIdWhatARelayDidNotLiveToRemove) {
  Producer producer(site.bootstrap());
  for (int n = 0; n < 3; ++n) producer.send(rejected(n));
  const auto quiet = site.worker("quiet");
  site.await("SELECT count(*) FROM hapax.dead_letters", "3");
  expect_leaves(*quiet);

  const auto one = worker("one", "outbox_sent:1");
  EXPECT_EQ(one->ended().signal, SIGKILL) << one->output();
  EXPECT_EQ(site.database().value(kUnpublished), "3");
  site.end_leases();
  one->start_again();
  site.await(kUnpublished, "0");
  const std::vector<Incoming> records = published();
  ASSERT_GE(records.size(), 4U);
  std::map<std::string, Incoming> first;
  std::vector<std::string> order;
  for (const Incoming& record : records) {
    const std::string id = *header(record, "hapax-dead-letter-id");
    const auto [before, is_first] = first.emplace(id, record);
    if (is_first) order.push_back(id);
    EXPECT_EQ(before->second.headers, record.headers);
    EXPECT_EQ(before->second.payload, record.payload);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"1", "2", "3"}));
  expect_leaves(*one);
}

TEST_F(DeadLetterTopic, HasEachLetterOnceThoughARelayDiesOnceItHasTakenThem) {
  Producer producer(site.bootstrap());
  for (int n = 0; n < 3; ++n) producer.send(rejected(n));
  const auto quiet = site.worker("quiet");
  site.await("SELECT count(*) FROM hapax.dead_letters", "3");
  expect_leaves(*quiet);

  const auto one = worker("one", "dead_letters_moved:1");
  EXPECT_EQ(one->ended().signal, SIGKILL) << one->output();
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.outbox"), "3");
  site.end_leases();
  one->start_again();
  site.await(kUnpublished, "0");
  EXPECT_EQ(ids(published()), (std::vector<std::string>{"1", "2", "3"}));
  expect_leaves(*one);
}

TEST_F(DeadLetterTopic, ThatRefusesHoldsUpNoOther) {
  constexpr int kHeldUp = 120;  // more than are read at once
  const std::string other = site.topic() + ".other";
  kafka::MockCluster& cluster = Site::mock_cluster();
  cluster.create_topic(other, 1);
  cluster.create_topic(other + ".dead", 1);
  cluster.create_topic(topic, 1);
  cluster.set_led(topic, 0, false);
  nlohmann::json routes = site.options("").config.at("routes");
  routes[0]["breaker"] = 0;
  routes.push_back(routes[0]);
  routes[1]["topic"] = other;

  Producer producer(site.bootstrap());
  for (int n = 0; n < kHeldUp; ++n) producer.produce(rejected(n));
  producer.flush();
  const auto quiet = site.worker("quiet", {{"routes", routes}});
  site.await("SELECT count(*) FROM hapax.dead_letters", std::to_string(kHeldUp));
  Outgoing behind = rejected(kHeldUp);
  behind.topic = other;
  behind.partition = 0;
  producer.send(behind);
  site.await("SELECT count(*) FROM hapax.dead_letters", std::to_string(kHeldUp + 1));
  expect_leaves(*quiet);

  routes[0]["dead_letter_topic"] = topic;
  routes[1]["dead_letter_topic"] = other + ".dead";
  const auto one = site.worker("one", {{"routes", routes}});
  site.await(kUnpublished, std::to_string(kHeldUp));
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.outbox WHERE source_topic = '" +
                                  other + "'"),
            "0");
  one->await("outbox_delayed", {{"topic", topic}}, 1, std::chrono::seconds(60));
  EXPECT_EQ(one->count("outbox_goes_on"), 0U) << "of a topic that never stopped";

  cluster.set_led(topic, 0, true);
  site.await(kUnpublished, "0");
  one->await("outbox_goes_on", {{"topic", topic}});
  EXPECT_EQ(one->count("outbox_delayed"), 1U);
  const std::vector<std::string> found = ids(read_records(site.bootstrap(), topic, 0));
  EXPECT_EQ(found.size(), std::size_t{kHeldUp});
  EXPECT_TRUE(std::ranges::is_sorted(found, {}, [](const std::string& id) { return stoi(id); }));
  expect_leaves(*one);
}

TEST_F(DeadLetterTopic, WaitsForTheSchemaThatItNeedsAndHoldsNoMessage) {
  {
    store::Session owner(site.database().owner());
    store::migrate_down(owner, 5);
  }
  Producer producer(site.bootstrap());
  producer.send(rejected(0));
  producer.send(site.payment(1));
  const auto one = worker("one");
  site.await_booked(1);
  site.await("SELECT count(*) FROM hapax.dead_letters", "1");
  {
    store::Session owner(site.database().owner());
    store::migrate_up(owner);
  }
  // Before all of roles.sql has run again, too.
  site.database().run(
      "GRANT SELECT, INSERT, DELETE ON hapax.outbox TO hapax_worker; "
      "GRANT SELECT, INSERT ON hapax.outbox_halts TO hapax_worker; "
      "GRANT SELECT ON hapax.outbox_batches TO hapax_worker; "
      "GRANT SELECT, INSERT ON hapax.outbox_clusters TO hapax_worker");
  one->await("dead_letters_delayed");
  site.database().run("GRANT UPDATE (published_at) ON hapax.dead_letters TO hapax_worker");
  site.await(kUnpublished, "0");
  EXPECT_EQ(ids(published()), std::vector<std::string>{"1"}) << "it is marked, not sent again";
  expect_leaves(*one);
}

}  // namespace
}  // namespace hapax::support
