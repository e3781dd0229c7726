// The worker: one poll thread that reads Kafka, lanes that process, a keeper that accounts.
//
// run() is the main loop: poll → receive → (lanes settle) → checkpoint → commit. PollThread
// decides, Shutdown ends. Everything in this class belongs to the poll thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "flow/route.hpp"
#include "kafka/consumer.hpp"
#include "observe/health.hpp"
#include "observe/metrics.hpp"
#include "traces/tracer.hpp"
#include "worker/await_topics.hpp"
#include "worker/dispatcher.hpp"
#include "worker/handler_watchdog.hpp"
#include "worker/kafka_health.hpp"
#include "worker/keeper.hpp"
#include "worker/lane_setup.hpp"
#include "worker/notices.hpp"
#include "worker/poll_thread.hpp"
#include "worker/shutdown.hpp"
#include "worker/worker_threads.hpp"

namespace hapax::worker {

class Worker final : public kafka::Listener {
 public:
  // Makes the handlers and calls their on_start. Connects to neither Kafka nor PostgreSQL yet.
  // Throws: std::runtime_error that names the handler whose on_start threw, or if librdkafka
  // refuses a setting.
  // `settled`: see LaneSetup.
  Worker(const config::Config& config, std::vector<flow::Route> routes, observe::Health& health,
         observe::Metrics& metrics, std::function<void(const Message&)> settled = {});
  ~Worker();

  // Before run(). See await_topics.hpp.
  std::optional<std::string> await_topics(const StopSignal& stop);

  // Joins the group and works until told to stop.
  // Blocks: until `stop`; then at most worker.shutdown_timeout, or seconds if that is less.
  Ended run(const StopSignal& stop);

  // Sends the spans that wait. For an end without the destructor, after run().
  // Blocks: see traces::Exporter::end().
  void end_traces() {
    if (tracer_) tracer_->end();
  }

 private:
  KeeperSetup keeper_setup() const;
  void report();

  void on_assigned(const std::vector<TopicPartition>& ids) override { poll_.assigned(ids); }
  void on_revoked(const std::vector<TopicPartition>& ids, bool lost) override {
    poll_.revoked(ids, lost);
  }
  void on_committed(const std::vector<kafka::Commit>& commits, kafka::CommitResult result,
                    const std::string& error) override {
    poll_.committed(commits, result, error);
  }
  void on_client_error(const kafka::ClientError& error) override { kafka_health_.failed(error); }

  const config::Config& config_;
  const std::string group_;
  const std::vector<flow::Route> routes_;
  observe::Health& health_;
  const std::vector<std::string> topics_;
  PostgresState postgres_;
  Notices notices_;
  Dispatcher dispatcher_;
  std::optional<traces::Tracer> tracer_;
  LaneSetup lane_setup_;
  WorkerThreads threads_;
  kafka::Consumer consumer_;
  KafkaHealth kafka_health_;
  Keeper keeper_;
  PollThread poll_;
  Shutdown shutdown_;
  HandlerWatchdog watchdog_;
  Clock::time_point last_report_{};
};

}  // namespace hapax::worker
