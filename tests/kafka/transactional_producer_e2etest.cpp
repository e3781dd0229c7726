// Transactions with a marker, against a real Kafka: who is fenced, and what is visible.
#include "kafka/transactional_producer.hpp"

#include <gtest/gtest.h>

#include "support/kafka_admin.hpp"
#include "support/read_records.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;
using kafka::Marker;
using kafka::TransactionalProducer;
using kafka::TransactionError;

struct TransactedTopic {
  explicit TransactedTopic(const std::string& name) : topic("transacted." + name) {
    create_topic(shared_kafka().bootstrap(), topic, 1);
  }
  std::unique_ptr<TransactionalProducer> producer(const std::string& id = "one",
                                                  std::stop_token stop = {}) const {
    auto made = std::make_unique<TransactionalProducer>(
        kafka::Properties{{"bootstrap.servers", shared_kafka().bootstrap()}},
        TransactionalProducer::Setup{.topic = topic,
                                     .id = topic + "/" + id,
                                     .timeout = std::chrono::minutes(2),
                                     .stop = stop});
    made->init();
    return made;
  }
  void send(TransactionalProducer& producer, const std::string& payload) const {
    producer.send({topic, "k", payload, {}}, 0, 1);
    EXPECT_FALSE(producer.await_answers());
  }
  std::vector<std::string> seen() const {
    std::vector<std::string> payloads;
    for (const Incoming& record : read_records(shared_kafka().bootstrap(), topic, 0))
      payloads.push_back(record.payload.value());
    return payloads;
  }
  std::string topic;
};

TEST(Transactions, AFencedProducerCommitsNothing) {
  HAPAX_NEEDS_KAFKA();
  const TransactedTopic one("fenced");
  const auto old = one.producer();
  EXPECT_EQ(old->marker(), std::nullopt);
  old->begin();
  one.send(*old, "old");
  const auto next = one.producer();
  EXPECT_EQ(next->marker(), std::nullopt);
  EXPECT_THROW(
      {
        old->mark({1, "of old"});
        old->commit();
      },
      TransactionError);
  next->begin();
  one.send(*next, "new");
  next->mark({2, "of new"});
  next->commit();
  next->await_visible([](const auto&) {});
  EXPECT_EQ(one.seen(), std::vector<std::string>{"new"});
  EXPECT_EQ(one.producer()->marker(), (Marker{2, "of new"}));
}

// The batch of another producer's transaction would hide ours, though ours is committed.
TEST(Transactions, ABatchIsVisibleOnlyWhenAllBeforeItIs) {
  HAPAX_NEEDS_KAFKA();
  const TransactedTopic one("hidden");
  const auto other = one.producer("other");
  other->begin();
  one.send(*other, "other");
  std::stop_source stop;
  const auto ours = one.producer("ours", stop.get_token());
  ours->begin();
  one.send(*ours, "ours");
  ours->mark({1, "token"});
  ours->commit();
  stop.request_stop();
  EXPECT_THROW(ours->await_visible([](const auto&) {}), TransactionError)
      << "it would wait, were it not stopped";
  other->commit();
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  for (bool visible = false; !visible;) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    try {
      ours->await_visible([](const auto&) {});
      visible = true;
    } catch (const TransactionError&) {
    }
  }
  EXPECT_EQ(one.seen(), (std::vector<std::string>{"other", "ours"}));
}

}  // namespace
}  // namespace hapax::support
