#include "support/kafka_server.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "kafka/sample_records.hpp"
#include "support/kafka_admin.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;

TEST(KafkaServer, SurvivesAKillAndAStopOnTheSamePorts) {
  HAPAX_NEEDS_KAFKA();
  KafkaServer server;
  const std::string bootstrap = server.bootstrap();
  create_topic(bootstrap, "t", 2);
  Producer producer(bootstrap);
  const auto sent = sample_records("t");
  for (const Outgoing& record : sent) producer.send(record);  // a retry must not be overtaken
  reset_offset(bootstrap, "g", "t", 0, {3, "why"});

  server.kill();
  server.start();
  expect_equal(read_records(bootstrap, "t", 0), sent);
  EXPECT_EQ(committed(bootstrap, "g", "t", 0), (GroupOffset{3, "why"}));

  server.stop();
  server.start();
  EXPECT_EQ(producer.send({"t", "later", {}, {}, 0}).offset, 4) << "the old client reconnects";
}

TEST(KafkaServer, HidesAbortedTransactionsAndCountsTheirMarkers) {
  HAPAX_NEEDS_KAFKA();
  const KafkaServer server;
  create_topic(server.bootstrap(), "t", 1);
  Producer producer(server.bootstrap(), {{"transactional.id", "p"}});
  producer.begin();
  producer.produce({"t", "committed", {}, {}, 0});
  producer.commit();
  producer.begin();
  producer.produce({"t", "aborted", {}, {}, 0});
  producer.flush();
  producer.abort();

  const auto records = read_records(server.bootstrap(), "t", 0);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].payload, "committed");
  EXPECT_EQ(end_offset(server.bootstrap(), "t", 0), 4);
}

TEST(KafkaServer, AnswersNothingWhileFrozenAndEverythingOnceThawed) {
  HAPAX_NEEDS_KAFKA();
  KafkaServer server;
  create_topic(server.bootstrap(), "t", 1);
  Producer producer(server.bootstrap());
  producer.send({"t", "before", {}, {}, 0});
  server.freeze();
  producer.produce({"t", "frozen", {}, {}, 0});
  EXPECT_THROW(producer.flush(500ms), std::runtime_error);
  server.thaw();
  producer.flush();
  EXPECT_EQ(read_records(server.bootstrap(), "t", 0).size(), 2U);
}

TEST(KafkaServer, MakesTopicsWithConfigsAndRemovesThem) {
  HAPAX_NEEDS_KAFKA();
  const KafkaServer server(std::map<std::string, std::string>{{"message.max.bytes", "5000"}});
  const std::string bootstrap = server.bootstrap();
  create_topic(bootstrap, "t", 3, {{"cleanup.policy", "compact"}});
  EXPECT_THROW(create_topic(bootstrap, "t", 3), std::runtime_error);
  EXPECT_THROW(create_topic(bootstrap, "u", 1, {{"cleanup.policy", "nonsense"}}),
               std::runtime_error);
  Producer producer(bootstrap);
  EXPECT_NO_THROW(producer.send({"t", "a", "key", {}, 2}));
  EXPECT_THROW(producer.send({"t", "no key in a compacted topic", {}, {}, 2}), std::runtime_error);
  EXPECT_THROW(producer.send({"t", std::string(6000, 'x'), "key", {}, 2}), std::runtime_error);
  delete_topic(bootstrap, "t");
  // The controller answers before the broker has removed it.
  const auto is_gone = [&] {
    try {
      end_offset(bootstrap, "t", 2);
      return false;
    } catch (const std::runtime_error&) {
      return true;
    }
  };
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!is_gone()) ASSERT_LT(std::chrono::steady_clock::now(), until);
}

}  // namespace
}  // namespace hapax::support
