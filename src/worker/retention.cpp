#include "worker/retention.hpp"

#include <chrono>
#include <utility>

#include "observe/log.hpp"
#include "store/retention.hpp"
#include "worker/stoppable_wait.hpp"

namespace hapax::worker {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBatch = 1000;    // rows a transaction
constexpr auto kBetweenBatches = 10ms;  // leaves the disk to the claims
constexpr auto kBetweenRounds = 10s;
constexpr auto kLease = 60s;  // renewed each round and each kBatchesPerLease batches
constexpr int kBatchesPerLease = 100;

}  // namespace

Retention::Retention(std::function<store::Session()> connect, std::string worker_name)
    : connect_(std::move(connect)),
      worker_name_(std::move(worker_name)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Retention::run(const std::stop_token& stop) {
  bool said = false;
  while (!stop.stop_requested()) {
    try {
      remove_expired(stop);
      said = false;
    } catch (const store::DatabaseError& error) {
      // Keys that stay a while longer harm nobody; keys that stay for good fill the disk.
      if (!std::exchange(said, true))
        observe::log::warning("retention_delayed",
                              {{"sqlstate", error.sqlstate()}, {"error", error.what()}},
                              "expired keys could not be removed; trying again every 10 s");
    }
    wait_unless_stopped(stop, kBetweenRounds);
  }
}

void Retention::remove_expired(const std::stop_token& stop) {
  store::Session session = connect_();
  store::Removed removed{kBatch, "-infinity"};
  for (int batch = 0; removed.keys == kBatch && !stop.stop_requested(); ++batch) {
    if (batch % kBatchesPerLease == 0 &&
        !store::take_lease(session, "retention", worker_name_, kLease))
      return;
    removed = store::expire_keys(session, kBatch, removed.until);
    wait_unless_stopped(stop, kBetweenBatches);
  }
}

}  // namespace hapax::worker
