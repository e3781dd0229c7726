// What `hapax bench` compares a worker with: a hand-written loop that does the same to PostgreSQL
// and nothing else. No Kafka, no queues, no retries: it stops at the first error.
//
// The texts are the worker's own (sql/), in as many round trips: one for a message, two for a
// batch. It also parses the payload and takes its SHA-256, as any such loop must. So if a worker is
// slower, the difference is the cost of Kafka and the framework.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "store/message/claim.hpp"
#include "store/session.hpp"

namespace hapax::store {

// A payment: {"id": …, "account": …, "amount_minor": …}.
struct BareMessage {
  const std::string& key;
  const std::string& payload;
  std::int32_t partition = 0;
};

struct BareLoop {
  ConnectOptions connect;
  std::size_t connections = 1;
  std::size_t batch = 1;  // messages a transaction; 1: as the worker does without batches
  std::string table;      // of payments; no quoting is done
  std::string scope;
  std::string group;
  std::string topic;
  std::size_t messages = 0;
  std::function<BareMessage(std::size_t)> message;
  // After each transaction, with its number of messages; on any of the loop's threads. False: stop.
  std::function<bool(std::size_t)> committed;
  Durability durability = Durability::synchronous;

  // Throws: DatabaseError. Blocks: until all messages are through.
  void run() const;
};

}  // namespace hapax::store
