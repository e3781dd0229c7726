// Dead letters in a topic of a real Kafka: the topic is missing at first, Kafka refuses some
// records, and `hapax check` warns before that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "support/command.hpp"
#include "support/kafka_admin.hpp"
#include "support/read_records.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using testing::HasSubstr;

constexpr const char* kUnpublished =
    "SELECT (SELECT count(*) FROM hapax.dead_letters WHERE published_at IS NULL) + "
    "(SELECT count(*) FROM hapax.outbox)";

std::optional<std::string> header(const Incoming& record, const std::string& name) {
  const auto found =
      std::ranges::find(record.headers, name, &decltype(record.headers)::value_type::first);
  if (found == record.headers.end()) throw std::runtime_error("no header " + name);
  return found->second;
}

struct DeadSite {
  explicit DeadSite(bool transactions = false) {
    if (transactions) patch["publish"]["transactions"] = true;
  }

  Site site{1};
  std::string topic = site.topic() + ".dead";
  // In order, so that ids are in the order of offsets.
  nlohmann::json patch = {{"worker", {{"ordering", "partition"}}},
                          {"route", {{"dead_letter_topic", topic}}}};

  void reject(Producer& producer, int number, const nlohmann::json& more = {}) {
    Outgoing record = site.payment(number, {{"do", "reject"}});
    if (!more.is_null()) record.payload = site.payment(number, more).payload;
    producer.send(record);
  }
};

void expect_waited_for(bool transactions) {
  DeadSite dead(transactions);
  Site& site = dead.site;
  const auto worker = site.worker("w", dead.patch);
  Producer producer(site.bootstrap());
  dead.reject(producer, 0);
  worker->await("outbox_delayed", {{"topic", dead.topic}}, 1, std::chrono::seconds(60));
  worker->await_metric("hapax_dead_letters_unpublished 1");
  producer.send(site.payment(1));
  site.await_booked(1);
  create_topic(site.bootstrap(), dead.topic, 1);
  site.await(kUnpublished, "0");
  worker->await("outbox_goes_on");
  EXPECT_EQ(worker->count("outbox_delayed"), 1U) << "more than a line for one cause";
  EXPECT_EQ(worker->count("outbox_halted"), 0U);
  const auto records = read_records(site.bootstrap(), dead.topic, 0);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(header(records[0], "hapax-dead-letter-id"), "1");
  expect_leaves(*worker);
}

TEST(DeadLetterTopicOnKafka, IsWaitedForWhileMessagesGoOn) {
  HAPAX_NEEDS_KAFKA();
  expect_waited_for(false);
}

TEST(DeadLetterTopicInTransactions, IsWaitedForWhileMessagesGoOn) {
  HAPAX_NEEDS_KAFKA();
  expect_waited_for(true);
}

void expect_what_fits(bool transactions) {
  DeadSite dead(transactions);
  Site& site = dead.site;
  create_topic(site.bootstrap(), dead.topic, 1, {{"max.message.bytes", "8000"}});
  Producer producer(site.bootstrap());
  // Compresses badly, so that the broker sees its size.
  std::string noise;
  std::minstd_rand random(1);
  while (noise.size() < 20'000) noise += "0123456789abcdef"[random() % 16];
  dead.reject(producer, 0, {{"do", "reject"}, {"noise", noise}});
  Outgoing large_header = site.payment(1, {{"do", "reject"}});
  large_header.headers.emplace_back("noise", noise);
  producer.send(large_header);
  dead.reject(producer, 2);
  const auto worker = site.worker("w", dead.patch);
  site.await("SELECT count(*) FROM hapax.dead_letters WHERE published_at IS NOT NULL", "3");
  site.await(kUnpublished, "0");

  const auto records = read_records(site.bootstrap(), dead.topic, 0);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].payload, std::nullopt);
  EXPECT_EQ(records[0].key, site.payment(0).key);
  EXPECT_EQ(header(records[0], "hapax-left-out"), "payload");
  EXPECT_EQ(header(records[0], "idempotency-key"), "p0");
  EXPECT_EQ(records[1].key, std::nullopt);
  EXPECT_EQ(header(records[1], "hapax-left-out"), "payload, key, headers");
  EXPECT_EQ(header(records[1], "hapax-original-offset"), "1");
  EXPECT_EQ(records[2].payload, site.payment(2, {{"do", "reject"}}).payload);
  EXPECT_EQ(header(records[2], "hapax-left-out"), std::nullopt);
  worker->await("dead_letter_too_large", {{"dead_letter", 1}});
  expect_leaves(*worker);
}

TEST(DeadLetterTopicOnKafka, HasWhatFitsOfARecordThatIsTooLargeAndAllOfTheNext) {
  HAPAX_NEEDS_KAFKA();
  expect_what_fits(false);
}

TEST(DeadLetterTopicInTransactions, HasWhatFitsOfARecordThatIsTooLargeAndAllOfTheNext) {
  HAPAX_NEEDS_KAFKA();
  expect_what_fits(true);
}

TEST(DeadLetterTopicOnKafka, IsCheckedWithoutWritingToIt) {
  HAPAX_NEEDS_KAFKA();
  DeadSite dead;
  Site& site = dead.site;
  const sandbox::TemporaryFolder folder("check");
  const auto config = folder.path() / "worker.json";
  std::ofstream(config) << site.options("check", dead.patch).config.dump();
  const auto check = [&] { return hapax({"check"}, config).text; };
  EXPECT_THAT(check(), HasSubstr("FAIL  dead letter topic " + dead.topic + ": does not exist"));
  create_topic(site.bootstrap(), dead.topic, 1, {{"cleanup.policy", "compact"}});
  EXPECT_THAT(check(), HasSubstr("FAIL  settings of " + dead.topic + ": cleanup.policy compact"));
  EXPECT_THAT(check(), HasSubstr("ok    writing to " + dead.topic + ": allowed"));
  EXPECT_EQ(end_offset(site.bootstrap(), dead.topic, 0), 0);
  site.database().run(
      "INSERT INTO hapax.checkpoints (group_id, topic, partition, epoch, key_spec, scope) VALUES "
      "('" +
      site.group() + "', '" + dead.topic + "', 0, 1, '', 's')");
  EXPECT_THAT(check(), HasSubstr("dead letters would come back"));
}

}  // namespace
}  // namespace hapax::support
