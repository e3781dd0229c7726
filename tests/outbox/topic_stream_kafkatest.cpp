// A topic that a broker does not know, on librdkafka's mock broker.
#include "outbox/topic_stream.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "kafka/mock_cluster.hpp"

namespace hapax::outbox {
namespace {

using namespace std::chrono_literals;

struct ForgetfulBroker {
  ForgetfulBroker() { cluster.create_topic("receipts", 1); }

  TopicStream stream() {
    const auto make = [bootstrap = cluster.bootstrap()] {
      return std::make_unique<kafka::StreamProducer>(
          kafka::Properties{{"bootstrap.servers", bootstrap}}, kafka::StreamProducer::Limits{});
    };
    return {"receipts", "g", make};
  }
  static void offer(TopicStream& stream, std::int64_t id) {
    store::OutboxRow row;
    row.id = id;
    row.topic = "receipts";
    row.key = "k";
    row.payload = "p";
    stream.offer({row});
  }
  // Until `done`, or a halt.
  static Stream::News drive(TopicStream& stream, const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!done()) {
      Stream::News news = stream.turn(true, 10ms);
      if (news.halt) return news;
      if (std::chrono::steady_clock::now() > deadline)
        throw std::runtime_error("it takes too long");
    }
    return {};
  }
  void forget_topic() {
    cluster.set_topic_error("receipts", kafka::MockCluster::Error::unknown_topic);
    // So the client asks for metadata.
    cluster.refuse_all(kafka::MockCluster::Request::produce, kafka::MockCluster::Error::not_leader);
  }
  void remember_topic() {
    cluster.set_topic_error("receipts", kafka::MockCluster::Error::none);
    cluster.accept(kafka::MockCluster::Request::produce);
  }

  kafka::MockCluster cluster;
};

TEST(TopicStream, GoesOnThoughABrokerDoesNotKnowTheTopicForAMoment) {
  ForgetfulBroker broker;
  auto stream = broker.stream();
  ForgetfulBroker::offer(stream, 1);
  ForgetfulBroker::drive(stream, [&] { return stream.is_empty(); });
  broker.forget_topic();
  ForgetfulBroker::offer(stream, 2);
  bool was_sent = false;
  const auto refused = ForgetfulBroker::drive(stream, [&] {
    was_sent = was_sent || stream.is_in_flight();
    return was_sent && !stream.is_in_flight();
  });
  EXPECT_FALSE(refused.halt) << refused.halt->detail;
  EXPECT_FALSE(stream.is_empty()) << "the broker has taken it";
  broker.remember_topic();
  const auto sent = ForgetfulBroker::drive(stream, [&] { return stream.is_empty(); });
  EXPECT_FALSE(sent.halt) << sent.halt->detail;
}

}  // namespace
}  // namespace hapax::outbox
