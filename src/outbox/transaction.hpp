// The two steps of a batch in Kafka: one finds out what became of the last batch, the other sends
// the next one. They run on a thread of their own. docs/outbox.md tells why this is exactly once.
//
// Each blocks for as long as Kafka takes, and ends soon after the producer's stop.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kafka/transactional_producer.hpp"
#include "store/worker/outbox.hpp"

namespace hapax::outbox {

// What became of the batch that PostgreSQL holds.
enum class Verdict {
  none_open,    // PostgreSQL holds none, or one about which an operator has decided
  sent,         // Kafka has the batch
  unsent,       // Kafka has nothing of it, and never will
  tail_lost,    // as unsent, but Kafka has a later batch, so PostgreSQL has lost commits
  marker_lost,  // Kafka has lost the marker, so it cannot be known
};
// `held`: the marker that Kafka holds. Pure.
Verdict judge(const std::optional<store::OpenBatch>& open,
              const std::optional<kafka::Marker>& held);

struct Judged {
  Verdict verdict = Verdict::none_open;
  kafka::Marker held;  // after this step; nothing if the verdict is marker_lost
  std::string topic_error =
      {};  // if the verdict is marker_lost: what is wrong with the topic, or ""
};

// Afterwards no older producer of this id can change anything, so the verdict is final. If a batch
// was open or had halted its topic, then all records of the topic are visible now, or never will
// be. Throws: kafka::TransactionError.
Judged take_over_batch(kafka::TransactionalProducer& producer,
                       const std::optional<store::OpenBatch>& open, const std::string& fresh_token,
                       const kafka::Delayed& delayed);

// Precondition: PostgreSQL has committed the batch since the producer's init().
struct Batch {
  kafka::Marker marker;
  std::string group;
  std::vector<std::pair<store::OutboxRow, std::int32_t>> rows;  // with their partitions
};

// Returns when consumers can see the batch, or with a refusal. After a refusal Kafka has nothing of
// the batch.
// Throws: kafka::TransactionError. Then Kafka may have the batch.
std::optional<kafka::TransactionalProducer::Refusal> send_batch(
    kafka::TransactionalProducer& producer, const Batch& batch, const kafka::Delayed& delayed);

}  // namespace hapax::outbox
