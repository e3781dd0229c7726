#include "worker/keeper.hpp"

#include <utility>

namespace hapax::worker {

using std::chrono::milliseconds;

Keeper::Keeper(KeeperSetup setup, kafka::Consumer& consumer, Notices& notices,
               PostgresState& postgres, observe::Metrics& metrics)
    : setup_(std::move(setup)),
      halts_(setup_.group, held_, notices),
      logs_(held_, consumer, notices),
      static_group_(setup_.group, setup_.topics_of_static_member, consumer, notices),
      checkpointer_(setup_, held_, halts_, notices, postgres, metrics),
      starts_(setup_, consumer, held_, halts_, logs_, static_group_, notices, postgres) {}

void Keeper::start() {
  checkpointer_.start();
  starts_.start();
}

void Keeper::stop() {
  starts_.stop();
  checkpointer_.stop();
}

bool Keeper::logs_looked_at(std::chrono::steady_clock::time_point since) {
  if (logs_.looked_at(since)) return true;
  starts_.wake();
  return false;
}

std::vector<std::shared_ptr<Partition>> Keeper::with_another_log(
    const std::vector<std::shared_ptr<Partition>>& partitions, milliseconds timeout) const {
  return logs_.with_another_log(partitions, timeout);
}

void Keeper::acquire(const std::vector<std::shared_ptr<Partition>>& partitions,
                     milliseconds after) {
  starts_.acquire(partitions, after);
}

void Keeper::halted(const store::Halt& halt, bool recorded) {
  held_.remove_if_over({halt.topic, halt.partition});
  halts_.add(halt, recorded);
  if (!recorded) checkpointer_.wake();
}

bool Keeper::release(const std::vector<std::shared_ptr<Partition>>& partitions, bool idle,
                     milliseconds timeout) {
  for (const auto& partition : partitions) halts_.forget(partition->id());
  return checkpointer_.release(partitions, idle, timeout);
}

}  // namespace hapax::worker
