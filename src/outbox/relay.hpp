// Sends what handlers published, from its committed rows to Kafka. The promise: docs/outbox.md.
// Moves dead letters whose routes name a topic into the outbox, and so sends them, too.
//
// One relay of a group works at a time: the one that holds the lease. It runs in a worker, or alone
// as `hapax relay`.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "kafka/consumer.hpp"
#include "observe/metrics.hpp"
#include "outbox/endings.hpp"
#include "outbox/gauges.hpp"
#include "outbox/letter_mover.hpp"
#include "outbox/low_water.hpp"
#include "outbox/stream.hpp"
#include "store/worker/outbox.hpp"
#include "sync/mutex.hpp"

namespace hapax::outbox {

struct RelaySetup {
  std::string group;
  std::string name;  // shown to operators
  std::function<store::Session()> connect;
  std::function<kafka::Properties()> properties;           // the consumer's, as they stand now
  std::map<std::string, std::size_t, std::less<>> topics;  // → the largest record that each takes
  std::chrono::seconds lease{10};
  std::chrono::seconds sweep{60};                   // between two looks below the low-water marks
  std::map<std::string, std::string> letters = {};  // consumed topic → its dead letter topic
  bool transactions = false;                        // publish.transactions
};

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
  struct Topic {
    std::unique_ptr<Stream, EndsLater> stream;
    LowWater low_water = {};
    bool more = false;  // the last read was bounded
  };

  void turn();
  bool leads();
  void take_over();
  void forget();
  bool lease_is_fresh() const { return Clock::now() - fenced_at_ < setup_.lease; }
  void collect_answers();
  void hold_back();
  void take_news(const std::string& topic, const Stream::News& news);
  bool has_answers() const { return !acknowledged_.empty() || !settled_.empty(); }
  void halt(const store::OutboxHalt& halt);
  bool is_due();
  void sweep();
  store::OutboxStep next_step();
  void propose(store::OutboxStep& step);
  void opened(const store::OutboxStep& step, const store::OutboxRead& read);
  bool a_halt_ended(const store::OutboxRead& read);
  void send(store::OutboxRead read, const store::OutboxStep& step);
  void move_letters();
  void look_for_topics();
  void measure();
  void rest(const std::stop_token& stop);
  void leave();
  bool has_records() const;
  Topic& topic(const std::string& name);
  static std::int64_t mark_of(const Topic& topic);

  const RelaySetup setup_;
  const std::string holder_;  // of the lease: unlike setup_.name, no other process has it
  observe::Metrics& metrics_;
  Gauges gauges_;
  LetterMover letters_;

  std::optional<store::Session> session_;
  std::optional<store::OutboxLease> lease_;
  Endings endings_;
  std::map<std::string, Topic> topics_;
  std::vector<std::pair<std::string, std::int64_t>> acknowledged_;  // and not removed
  std::vector<store::SettledBatch> settled_;                        // and not written down
  std::map<std::string, store::OpenBatch> open_batches_;            // that earlier relays left
  std::set<std::int64_t> halts_;                                    // that were open
  std::future<std::set<std::string>> sweep_;                        // topics that it has found
  Clock::time_point fenced_at_{}, ask_lease_{}, look_again_{}, sweep_at_{}, peek_at_{},
      removing_since_{};
  std::string store_id_;
  std::string said_;  // why PostgreSQL does not let it work

  sync::Mutex mutex_;
  std::condition_variable_any woken_;
  bool nudged_ HAPAX_GUARDED_BY(mutex_) = false;
};

}  // namespace hapax::outbox
