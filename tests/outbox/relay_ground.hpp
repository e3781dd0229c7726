// A relay of group g in this process, between a real PostgreSQL and some Kafka. Rows are written as
// a handler's transaction leaves them.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "outbox/relay.hpp"
#include "support/database.hpp"
#include "support/read_records.hpp"

namespace hapax::outbox {

class RelayGround : public testing::Test {
 protected:
  // `topics`: how many partitions each has. The caller makes them.
  RelayGround(std::string bootstrap, std::map<std::string, int> topics)
      : bootstrap_(std::move(bootstrap)), topics_(std::move(topics)) {}

  // Keys are k<n modulo 10>, payloads the numbers [from, from + count).
  static std::string rows(const std::string& topic, int from, int count) {
    return "INSERT INTO hapax.outbox (group_id, topic, record_key, payload, headers, "
           "idempotency_key, source_topic, source_generation, source_partition, source_offset) "
           "SELECT 'g', '" +
           topic +
           "', convert_to('k' || n % 10, 'UTF8'), convert_to(n::text, 'UTF8'), "
           "'[[\"kind\",\"receipt\"]]', 'key ' || n, 'payments', 1, 3, n FROM generate_series(" +
           std::to_string(from) + ", " + std::to_string(from + count - 1) + ") n ORDER BY n;";
  }

  class Running {
   public:
    Running(RelaySetup setup, const std::string& versions)
        : metrics({versions, "", "", ""}), relay(std::move(setup), metrics) {
      thread = std::jthread([this](const std::stop_token& stop) { relay.run(stop); });
    }
    observe::Metrics metrics;
    Relay relay;
    std::jthread thread;
  };

  RelaySetup setup(const std::string& name = "w") {
    RelaySetup setup{"g",
                     name,
                     [options = database.worker()] { return store::Session(options); },
                     [bootstrap = bootstrap_] {
                       return kafka::Properties{{"bootstrap.servers", bootstrap},
                                                {"topic.metadata.refresh.interval.ms", "100"}};
                     },
                     {},
                     std::chrono::seconds(2)};
    for (const auto& [topic, partitions] : topics_) setup.topics[topic] = 1'000'000;
    return setup;
  }
  std::unique_ptr<Running> run(const std::string& name = "w") {
    return std::make_unique<Running>(setup(name), name);
  }

  void await_sent(const std::string& where = "true") {
    database.wait_until("SELECT count(*) FROM hapax.outbox WHERE " + where, "0");
  }

  std::vector<support::Incoming> records(const std::string& topic) {
    std::vector<support::Incoming> all;
    for (int partition = 0; partition < topics_.at(topic); ++partition)
      for (support::Incoming& record : support::read_records(bootstrap_, topic, partition))
        all.push_back(std::move(record));
    return all;
  }

  // Each of [0, count) once, in the order of numbers within a key.
  void expect_exact(const std::string& topic, int count) {
    std::map<std::string, int> last;
    const auto all = records(topic);
    EXPECT_EQ(all.size(), static_cast<std::size_t>(count));
    for (const support::Incoming& record : all) {
      const int n = std::stoi(*record.payload);
      EXPECT_EQ(*record.key, "k" + std::to_string(n % 10));
      const auto [before, first] = last.emplace(*record.key, n);
      EXPECT_EQ(n, first ? n % 10 : before->second + 10);
      before->second = n;
    }
  }

  test::Database database;

 private:
  const std::string bootstrap_;
  const std::map<std::string, int> topics_;
};

}  // namespace hapax::outbox
