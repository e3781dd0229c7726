// Keeps what PostgreSQL knows of this worker's partitions, so that neither the poll thread nor a
// lane waits for it. The headers of its parts tell what each does: Starts, Checkpointer, HaltWatch,
// LogWatch, StaticGroup.
//
// There are two threads. That of Starts may wait long for Kafka. Meanwhile that of Checkpointer
// goes on. Each has a session.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kafka/consumer.hpp"
#include "observe/metrics.hpp"
#include "worker/checkpointer.hpp"
#include "worker/halt_watch.hpp"
#include "worker/held_partitions.hpp"
#include "worker/keeper_interface.hpp"
#include "worker/keeper_setup.hpp"
#include "worker/log_watch.hpp"
#include "worker/notices.hpp"
#include "worker/postgres_state.hpp"
#include "worker/starts.hpp"
#include "worker/static_group.hpp"

namespace hapax::worker {

class Keeper final : public KeeperInterface {
 public:
  // Begins nothing; see start().
  Keeper(KeeperSetup setup, kafka::Consumer& consumer, Notices& notices, PostgresState& postgres,
         observe::Metrics& metrics);

  // Begins the threads. Call it once, before the functions below.
  void start();
  // Ends the threads. Blocks: until PostgreSQL and Kafka have answered what they were asked.
  void stop();

  bool logs_looked_at(std::chrono::steady_clock::time_point since) override;
  std::vector<std::shared_ptr<Partition>> with_another_log(
      const std::vector<std::shared_ptr<Partition>>& partitions,
      std::chrono::milliseconds timeout) const override;
  void acquire(const std::vector<std::shared_ptr<Partition>>& partitions,
               std::chrono::milliseconds after) override;
  void halted(const store::Halt& halt, bool recorded) override;
  std::string store_id() const override { return starts_.store_id(); }
  std::string cluster_id() const override { return starts_.cluster_id(); }

  void joined() override { static_group_.joined(); }
  bool release(const std::vector<std::shared_ptr<Partition>>& partitions, bool idle,
               std::chrono::milliseconds timeout) override;

  // How long the thread that writes checkpoints has had no answer from PostgreSQL. Any thread.
  std::chrono::steady_clock::duration silence() const { return checkpointer_.silence(); }

  // The started partitions. Any thread.
  store::HeldLogs held_logs() const { return held_.logs(); }

 private:
  const KeeperSetup setup_;
  HeldPartitions held_;
  HaltWatch halts_;
  LogWatch logs_;
  StaticGroup static_group_;
  Checkpointer checkpointer_;
  Starts starts_;
};

}  // namespace hapax::worker
