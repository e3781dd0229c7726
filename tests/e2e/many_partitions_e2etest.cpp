// A thousand partitions in three topics: how soon all of them work, and that moving them costs no
// process.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <string>

#include "support/command.hpp"
#include "support/kafka_admin.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kEach = 333;
constexpr int kAllPartitions = 3 * kEach;
// What a worker takes at rest (docs/performance.md), and 50 kB a partition. It takes a third of
// that.
constexpr double kMostMemory = 20e6 + 50e3 * kAllPartitions;

// The three topics are the site's own, with one partition, and these.
class ManyPartitions : public testing::Test {
 protected:
  void SetUp() override {
    HAPAX_NEEDS_KAFKA();
    site_ = std::make_unique<Site>(1);
    for (const char* const name : kNames) create_topic(site_->bootstrap(), topic(name), kEach);
  }

  std::string topic(const std::string& name) const { return site_->topic() + name; }

  nlohmann::json patch() const {
    nlohmann::json routes = nlohmann::json::array();
    for (const char* const name : kNames) {
      nlohmann::json route = site_->options("w").config.at("routes")[0];
      route["topic"] = topic(name);
      routes.push_back(route);
    }
    return {{"routes", routes}, {"kafka", {{"session.timeout.ms", 6000}}}};
  }

  int sessions_of_others() const {
    return std::stoi(site_->database().value(
        "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
        "AND datname = current_database() AND backend_type = 'client backend'"));
  }

  // One payment into each partition.
  void pay(int first) {
    // On a busy machine Kafka takes longer than 30 s to lead 999 new partitions.
    Producer producer(site_->bootstrap(), {{"topic.metadata.propagation.max.ms", "180000"}});
    for (int n = 0; n < kAllPartitions; ++n) {
      Outgoing payment = site_->payment(first + n);
      payment.topic = topic(kNames[static_cast<std::size_t>(n % 3)]);
      payment.partition = n / 3;
      producer.produce(payment);
    }
    // Kafka may store 22 records a second, because each also answers a fetch of 500 partitions.
    producer.flush(std::chrono::minutes(3));
  }

  static constexpr std::array<const char*, 3> kNames{"-a", "-b", "-c"};
  std::unique_ptr<Site> site_;
};

double number_in(const std::string& metrics, const std::string& name) {
  const auto at = metrics.find("\n" + name + " ");
  return at == metrics.npos ? 0 : std::stod(metrics.substr(at + name.size() + 2));
}

double seconds_between(const nlohmann::json& first, const nlohmann::json& last) {
  const auto seconds = [](const nlohmann::json& line) {
    const std::string time = line.at("time");  // 2025-11-21T09:05:00.123456Z
    return 3600 * std::stod(time.substr(11, 2)) + 60 * std::stod(time.substr(14, 2)) +
           std::stod(time.substr(17, 9));
  };
  const double passed = seconds(last) - seconds(first);
  return passed < 0 ? passed + 86'400 : passed;
}

TEST_F(ManyPartitions, StartInOneGoAndTellHowLongItTook) {
  pay(0);
  const auto worker = site_->worker("w", patch());
  const auto assigned = worker->await("assigned");
  int sessions = 0;  // the most at a time
  for (int started = 100; started < kAllPartitions; started += 100) {
    worker->await("partition_started", {}, started);
    sessions = std::max(sessions, sessions_of_others());
  }
  const auto last = worker->await("partition_started", {}, kAllPartitions);
  const double taken = seconds_between(assigned, last);
  RecordProperty("seconds", std::to_string(taken));
  site_->await_booked(kAllPartitions);
  sessions = std::max(sessions, sessions_of_others());
  RecordProperty("sessions", sessions);
  const int lanes = site_->options("w").config.at("worker").at("lanes");
  EXPECT_GT(sessions, lanes);
  EXPECT_LE(sessions, lanes + 6);  // docs/performance.md promises it
  const double memory = number_in(worker->get("/metrics").body, "process_resident_memory_bytes");
  RecordProperty("megabytes", static_cast<int>(memory / 1e6));
  EXPECT_GT(memory, 10e6);
  EXPECT_LE(memory, kMostMemory);
  site_->expect_exact(kAllPartitions);
  expect_leaves(*worker);
  const Said audit = hapax({"audit", "--topic", topic("-a")}, worker->config());
  EXPECT_EQ(audit.code, 0) << audit.text;
}

// Each is two rebalances. More of them than three take minutes: HAPAX_ROUNDS=50.
int rounds() {
  const char* const wanted = std::getenv("HAPAX_ROUNDS");
  return wanted == nullptr ? 3 : std::stoi(wanted);
}

TEST_F(ManyPartitions, MoveBetweenWorkersAndNothingEndsOrDoubles) {
  const auto stays = site_->worker("stays", patch());
  stays->await("partition_started", {}, kAllPartitions);
  for (int round = 0; round < rounds(); ++round) {
    const auto comes = site_->worker("comes", patch());
    comes->await("partition_started");
    pay(round * kAllPartitions);
    expect_leaves(*comes);  // amid its starts
  }
  site_->await_booked(rounds() * kAllPartitions);
  site_->expect_exact(rounds() * kAllPartitions);
  EXPECT_EQ(stays->count("halted") + stays->count("cautious"), 0U);
  // The next one is killed.
  const auto dies = site_->worker("dies", patch());
  dies->await("partition_started", {}, kAllPartitions / 3);
  dies->kill();
  const auto killed = std::chrono::steady_clock::now();
  pay(rounds() * kAllPartitions);
  site_->await_booked((rounds() + 1) * kAllPartitions);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - killed;
  RecordProperty("seconds_after_a_kill", std::to_string(taken.count()));
  site_->expect_exact((rounds() + 1) * kAllPartitions);
  EXPECT_EQ(stays->count("halted"), 0U);
  expect_leaves(*stays);
}

}  // namespace
}  // namespace hapax::support
