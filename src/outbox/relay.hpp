// Sends what handlers published, from its committed rows to Kafka. The promise: docs/outbox.md.
// Moves dead letters whose routes name a topic into the outbox, and so sends them, too.
//
// One relay of a group works at a time: the one that holds the lease. It runs in a worker, or alone
// as `hapax relay`.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <optional>
#include <set>
#include <stop_token>

#include "observe/metrics.hpp"
#include "outbox/cluster.hpp"
#include "outbox/gauges.hpp"
#include "outbox/letter_mover.hpp"
#include "outbox/outbound_topics.hpp"
#include "outbox/relay_lease.hpp"
#include "outbox/relay_setup.hpp"
#include "outbox/sweep.hpp"
#include "outbox/unremoved.hpp"
#include "store/worker/outbox.hpp"
#include "sync/mutex.hpp"

namespace hapax::outbox {

// Thread safety: run() belongs to one thread; nudge() may be called from any.
class Relay {
 public:
  Relay(RelaySetup setup, observe::Metrics& metrics);

  // Works until a stop is requested, then lets another relay take over at once.
  // Throws: nothing of PostgreSQL's or Kafka's.
  // Blocks: until then, and about a second for answers that are on their way.
  void run(const std::stop_token& stop);

  // A transaction with records was committed: look at once.
  void nudge();

 private:
  using Clock = std::chrono::steady_clock;

  void turn();
  bool seek_lease();
  void forget();
  void move_letters();
  void send();
  void note_cluster();
  bool read_cluster();
  void halt(const store::OutboxHalt& halt);
  std::optional<store::OutboxStep> due_step();
  bool a_halt_ended(const store::OutboxRead& read);
  void measure();
  void rest(const std::stop_token& stop);
  void leave();

  const RelaySetup setup_;
  Gauges gauges_;
  LetterMover letters_;
  RelayLease lease_;
  Cluster cluster_;
  OutboundTopics topics_;
  Unremoved unremoved_;
  Sweep sweep_;
  std::set<std::int64_t> halts_;  // that were open
  Clock::time_point peek_at_{};
  Clock::time_point read_cluster_at_{};

  sync::Mutex mutex_;
  std::condition_variable_any woken_;
  bool nudged_ HAPAX_GUARDED_BY(mutex_) = false;
};

}  // namespace hapax::outbox
