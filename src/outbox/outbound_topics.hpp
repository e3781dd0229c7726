// All topics that the relay writes. They are those of the configuration, of rows that an earlier
// configuration left, and of batches that an earlier relay left open.
//
// Thread safety: none; it belongs to the relay's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "observe/metrics.hpp"
#include "outbox/cluster.hpp"
#include "outbox/endings.hpp"
#include "outbox/outbound_topic.hpp"
#include "outbox/relay_setup.hpp"
#include "outbox/unremoved.hpp"
#include "store/session.hpp"
#include "store/worker/outbox.hpp"

namespace hapax::outbox {

class OutboundTopics {
 public:
  // All outlive it.
  OutboundTopics(const RelaySetup& setup, Cluster& cluster, observe::Metrics& metrics)
      : setup_(setup), cluster_(cluster), metrics_(metrics) {}

  // After a take-over. `open`: the batches that earlier relays left.
  void begin(std::map<std::string, store::OpenBatch> open);
  // Another relay has the records in hand now. librdkafka begins no more requests with them.
  void forget();
  // Looks for other topics that have rows, if that is due. Throws: DatabaseError.
  void look(store::Session& session);
  // Makes the topic if it is missing.
  OutboundTopic& at(const std::string& name);

  // Sends, and collects answers: records that Kafka has go into `unremoved`. Returns what must
  // halt. `may_send`: see Stream::turn(). Throws: nothing. Blocks: at most `timeout`.
  std::vector<store::OutboxHalt> turn(bool may_send, std::chrono::milliseconds timeout,
                                      Unremoved& unremoved);
  // PostgreSQL holds this halt.
  void halted(const store::OutboxHalt& halt);

  // Reads the topics that have room for a portion. Opens a batch of each that can send one: its
  // transaction in Kafka begins only once PostgreSQL holds it.
  store::OutboxStep next_step();
  // Whether an earlier read of a topic in `step` reached its bound.
  bool have_more(const store::OutboxStep& step) const;
  // PostgreSQL holds what `step` opened.
  void opened(const store::OutboxStep& step, const store::OutboxRead& read);
  // The rows that `step` has read.
  void take(const store::OutboxStep& step, store::OutboxRead read);
  // The marks have passed records that may be sent now.
  void read_all_again();

  bool have_records() const;
  bool are_in_flight() const;
  // Topic → the id behind which it has records that were not removed.
  std::map<std::string, std::int64_t> marks() const;

 private:
  OutboundTopic make(const std::string& name);

  const RelaySetup& setup_;
  Cluster& cluster_;
  observe::Metrics& metrics_;
  Endings endings_;
  std::map<std::string, OutboundTopic> topics_;
  std::map<std::string, store::OpenBatch> open_batches_;  // that earlier relays left
  std::chrono::steady_clock::time_point look_at_{};
};

}  // namespace hapax::outbox
