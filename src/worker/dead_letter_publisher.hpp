// Publishes dead letters to the Kafka topics that routes name, from their committed rows, in the
// worker that holds the group's lease. A thread, a session and a producer of its own: nothing of
// the messages waits for it.
//
// At least once: if a publisher dies after Kafka has a letter and before its row is marked, the
// next leader publishes it again under the same id. One letter after the other, by id.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "kafka/ordered_producer.hpp"
#include "observe/metrics.hpp"
#include "store/worker/publications.hpp"
#include "worker/postgres_state.hpp"

namespace hapax::worker {

struct DeadLetterPublisherSetup {
  std::string group;
  std::string worker_name;
  std::function<store::Session()> connect;
  std::function<kafka::Properties()> properties;   // the consumer's, as they stand now
  std::map<std::string, std::string> topics = {};  // consumed topic → dead letter topic
  // Then a new one: after a failover the old primary may live on.
  std::chrono::milliseconds session_lasts = std::chrono::minutes(1);
};

class DeadLetterPublisher {
 public:
  DeadLetterPublisher(DeadLetterPublisherSetup setup, PostgresState& postgres,
                      observe::Metrics& metrics);

  // Begins no more of them. Any thread.
  void stop() { thread_.request_stop(); }

 private:
  void run(const std::stop_token& stop);
  void turn(const std::stop_token& stop);
  bool ready();
  bool leads();
  void mark();
  bool publish(const store::UnpublishedLetter& letter, const std::stop_token& stop);
  void delayed(const std::string& topic, const std::string& why, const std::string& more = {});

  const DeadLetterPublisherSetup setup_;
  const std::string holder_;  // of the lease: unlike worker.name, no other process has it
  PostgresState& postgres_;
  observe::Metrics& metrics_;

  // The thread's own.
  std::vector<std::string> consumed_;  // the keys of setup_.topics
  std::optional<store::Session> session_;
  std::chrono::steady_clock::time_point renew_session_{};
  std::string store_id_;
  std::unique_ptr<kafka::OrderedProducer> producer_;
  std::vector<std::int64_t> delivered_;  // Kafka has them; their rows are not marked yet
  std::chrono::steady_clock::time_point ask_lease_{};  // again, not before
  bool leading_ = false;
  std::map<std::string, std::string> said_;  // dead letter topic, or "" for all → why it waits
  std::jthread thread_;                      // last: it uses all of the above
};

}  // namespace hapax::worker
