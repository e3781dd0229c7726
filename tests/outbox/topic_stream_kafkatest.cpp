// What a stream does if Kafka does not know its topic, or if no name server knows Kafka's name. On
// librdkafka's mock broker.
#include "outbox/topic_stream.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string_view>

#include "kafka/mock_cluster.hpp"
#include "support/read_records.hpp"

namespace hapax::outbox {
namespace {

using namespace std::chrono_literals;

constexpr const char* kUnansweredName = "kafka.unanswered";

// For that name: there is none, or no answer.
class NameServer {
 public:
  void fall_silent() {
    const std::lock_guard lock(mutex_);
    silent_ = true;
  }
  void await_question() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return asked_; });
  }
  void answer() {
    const std::lock_guard lock(mutex_);
    silent_ = asked_ = false;
    changed_.notify_all();
  }
  int asked() {
    std::unique_lock lock(mutex_);
    asked_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !silent_; });
    return EAI_NONAME;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false, silent_ = false;
};
NameServer name_server;  // threads of librdkafka use it

struct ForgetfulBroker {
  ForgetfulBroker() { cluster.create_topic("receipts", 1); }

  TopicStream stream() { return stream(cluster.bootstrap()); }
  TopicStream stream(const std::string& bootstrap) {
    const auto make = [bootstrap] {
      return std::make_unique<kafka::StreamProducer>(
          kafka::Properties{{"bootstrap.servers", bootstrap}}, kafka::StreamProducer::Limits{});
    };
    return {"receipts", "g", make, endings, group_cluster};
  }
  static void offer(TopicStream& stream, std::int64_t id, std::size_t bytes = 1) {
    store::OutboxRow row;
    row.id = id;
    row.topic = "receipts";
    row.key = "k";
    row.payload = std::string(bytes, 'p');
    row.bytes = bytes + 1;
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
  static void send(TopicStream& stream, std::int64_t id) {
    offer(stream, id);
    const auto sent = drive(stream, [&] { return stream.is_empty(); });
    EXPECT_FALSE(sent.halt) << sent.halt->detail;
  }
  // Until no answer is outstanding to what was on its way.
  static Stream::News drive_until_answered(TopicStream& stream) {
    bool was_sent = false;
    return drive(stream, [&] {
      was_sent = was_sent || stream.is_in_flight();
      return was_sent && !stream.is_in_flight();
    });
  }
  void forget_topic() {
    cluster.set_topic_error("receipts", kafka::MockCluster::Error::unknown_topic);
    // So the client asks for metadata. After not_leader it would not, from librdkafka 2.5 on: that
    // refusal names the leader.
    cluster.refuse_all(kafka::MockCluster::Request::produce,
                       kafka::MockCluster::Error::unknown_topic);
  }
  void remember_topic() {
    cluster.set_topic_error("receipts", kafka::MockCluster::Error::none);
    cluster.accept(kafka::MockCluster::Request::produce);
  }

  kafka::MockCluster cluster;
  Endings endings;
  Cluster group_cluster = [] {
    Cluster any;
    any.begin(std::nullopt);
    return any;
  }();
};

TEST(TopicStream, SendsNothingBeforePostgresqlHoldsTheClustersId) {
  ForgetfulBroker broker;
  broker.group_cluster.begin(store::OutboxCluster{});
  auto stream = broker.stream();
  ForgetfulBroker::offer(stream, 1);
  ForgetfulBroker::drive(stream, [&] { return broker.group_cluster.to_note().has_value(); });
  stream.turn(true, 10ms);
  EXPECT_FALSE(stream.is_in_flight());
  broker.group_cluster.noted(*broker.group_cluster.to_note());
  const auto sent = ForgetfulBroker::drive(stream, [&] { return stream.is_empty(); });
  EXPECT_FALSE(sent.halt) << sent.halt->detail;
}

// librdkafka would send it again, to the other cluster.
TEST(TopicStream, TakesBackWhatIsOnItsWayIfTheNameLeadsToAnotherCluster) {
  ForgetfulBroker broker;
  auto stream = broker.stream();
  ForgetfulBroker::send(stream, 1);
  broker.cluster.delay(kafka::MockCluster::Request::produce, 1h, 1);
  ForgetfulBroker::offer(stream, 2);
  ForgetfulBroker::drive(stream, [&] { return stream.is_in_flight(); });
  broker.group_cluster.begin(store::OutboxCluster{"another"});
  const auto news = ForgetfulBroker::drive(stream, [&] { return stream.is_empty(); });
  ASSERT_TRUE(news.halt);
  EXPECT_EQ(news.halt->reason, "other_cluster");
  EXPECT_NE(news.halt->detail.find("go to another."), std::string::npos) << news.halt->detail;
  EXPECT_FALSE(stream.is_in_flight());
}

TEST(TopicStream, GoesOnThoughABrokerDoesNotKnowTheTopicForAMoment) {
  ForgetfulBroker broker;
  auto stream = broker.stream();
  ForgetfulBroker::send(stream, 1);
  broker.forget_topic();
  ForgetfulBroker::offer(stream, 2);
  const auto refused = ForgetfulBroker::drive_until_answered(stream);
  EXPECT_FALSE(refused.halt) << refused.halt->detail;
  EXPECT_FALSE(stream.is_empty()) << "the broker has taken it";
  broker.remember_topic();
  const auto sent = ForgetfulBroker::drive(stream, [&] { return stream.is_empty(); });
  EXPECT_FALSE(sent.halt) << sent.halt->detail;
}

// Else two brokers with old metadata halt it, though it was written between their answers.
TEST(TopicStream, AnAnswerBetweenTwoRefusalsEndsTheDoubtAboutTheTopic) {
  ForgetfulBroker broker;
  auto stream = broker.stream();
  ForgetfulBroker::send(stream, 1);
  broker.forget_topic();
  ForgetfulBroker::offer(stream, 2);
  const auto first = ForgetfulBroker::drive_until_answered(stream);
  EXPECT_FALSE(first.halt) << first.halt->detail;
  const auto doubted_at = std::chrono::steady_clock::now();
  broker.remember_topic();
  ForgetfulBroker::drive(stream, [&] { return stream.is_empty(); });
  std::int64_t id = 2;
  while (std::chrono::steady_clock::now() - doubted_at < 10s) ForgetfulBroker::send(stream, ++id);
  broker.forget_topic();
  ForgetfulBroker::offer(stream, ++id);
  const auto second = ForgetfulBroker::drive_until_answered(stream);
  EXPECT_FALSE(second.halt) << second.halt->detail;
}

// Another relay may send the same records from then on. A batch holds one of these.
TEST(TopicStream, SendsNothingMoreOnceItLetsGoThoughRecordsWaitInLibrdkafka) {
  ForgetfulBroker broker;
  auto stream = broker.stream();
  ForgetfulBroker::send(stream, 1);
  broker.cluster.delay(kafka::MockCluster::Request::produce, 5s, 1);
  for (std::int64_t id = 2; id <= 5; ++id) ForgetfulBroker::offer(stream, id, 400'000);
  stream.turn(true, 1ms);
  stream.let_go();
  ForgetfulBroker::drive(stream, [&] { return !stream.is_in_flight(); });
  EXPECT_LE(support::read_records(broker.cluster.bootstrap(), "receipts", 0).size(), 2U);
}

// librdkafka cannot be interrupted in it.
TEST(TopicStream, EndsThoughNoNameServerAnswersWhileTheRelayGoesOn) {
  ForgetfulBroker broker;
  name_server.fall_silent();
  std::unique_ptr<TopicStream, EndsLater> stream(
      new TopicStream(broker.stream(std::string(kUnansweredName) + ":9092")), {&broker.endings});
  ForgetfulBroker::offer(*stream, 1);
  stream->turn(true, 1ms);
  name_server.await_question();
  auto ended = std::async(std::launch::async, [&] {
    stream->turn(false, 1ms);
    stream.reset();
  });
  EXPECT_EQ(ended.wait_for(5s), std::future_status::ready);
  name_server.answer();
}

}  // namespace
}  // namespace hapax::outbox

// librdkafka finds this one before the C library's.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  if (name != nullptr && std::string_view(name) == hapax::outbox::kUnansweredName)
    return hapax::outbox::name_server.asked();
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(name, service, hints, found);
}
