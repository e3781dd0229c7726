// Puts batches of one topic's records into Kafka, each in a transaction with a marker. The marker
// tells which batch Kafka took last: a number and a token, committed as an offset of a group of its
// own. So batch and marker are there, or neither.
//
// Of all producers with one id only the one that called init() last can change anything.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "kafka/stable_reader.hpp"
#include "kafka/stream_producer.hpp"
#include "kafka/transaction_error.hpp"

struct rd_kafka_error_s;

namespace hapax::kafka {

struct Marker {
  std::int64_t number = 0;
  std::string token;

  bool operator==(const Marker&) const = default;
};

// Thread safety: none; one thread at a time. All calls throw TransactionError. After one that did,
// only the destructor may follow, and Kafka may have committed the transaction.
class TransactionalProducer {
 public:
  struct Setup {
    std::string topic;
    std::string id;                     // transactional.id, and the name of the marker's group
    std::size_t batch_bytes = 500'000;  // at most so much in one of Kafka's own batches
    std::size_t most_records = 10'000;  // in a transaction
    // Kafka aborts a transaction that is older. A producer that died hides later records of its
    // partitions for so long.
    std::chrono::milliseconds timeout = std::chrono::seconds(10);
    std::stop_token stop = {};  // every call ends soon after a stop, with an error
  };

  // `properties`: a consumer's; only those about the connection are taken.
  TransactionalProducer(const Properties& properties, Setup setup);
  // Kafka aborts what is not committed, at the latest after Setup::timeout. Blocks: as long as
  // librdkafka asks for a host's name, about ten seconds if no name server answers.
  ~TransactionalProducer();
  TransactionalProducer(const TransactionalProducer&) = delete;
  TransactionalProducer& operator=(const TransactionalProducer&) = delete;

  // Of the cluster that it has reached. It follows a name that leads to another cluster once
  // librdkafka has connected again. Blocks: until a broker has told it, at most seconds.
  std::string cluster_id() const;

  // Fences all other producers of this id. What they left open is aborted or committed after this.
  // Blocks: at most 30 s.
  void init();
  // Of the last committed transaction; nothing if Kafka has none (any more).
  // Precondition: init(). Blocks: seconds.
  std::optional<Marker> marker() const;
  // Asks which partitions have a leader. Blocks: seconds.
  void look();

  // The partition of a record with this key, as the Java client chooses it; nothing if it had no
  // leader at the last look(). Without a key: any partition that has one.
  std::optional<std::int32_t> partition_of(const std::optional<std::string>& key);

  void begin();
  // Precondition: begin().
  void send(const OutgoingRecord& record, std::int32_t partition, std::int64_t id);
  struct Refusal {
    StreamAnswer first;       // of the lowest id
    std::size_t records = 0;  // that were refused with it
  };
  // Until Kafka has answered for all; what it refuses. Then the transaction cannot be committed.
  std::optional<Refusal> await_answers();
  void mark(const Marker& marker);
  // Blocks: at most Setup::timeout.
  void commit();

  // Until consumers with read_committed have passed the last transaction. That may be later than
  // the commit if a partition lost its leader, or if another producer's transaction is open. Calls
  // `delayed` once if it takes long. Blocks: until then, or until a stop.
  void await_visible(const Delayed& delayed);
  // The same for all that the topic holds now, also in partitions that have no leader. Fails if the
  // topic had no partition at the last look(). Precondition: look().
  void await_all_visible(const Delayed& delayed);

 private:
  static void on_delivery(rd_kafka_s* client, const rd_kafka_message_s* message, void* opaque);
  static void on_error(rd_kafka_s* client, int error, const char* reason, void* opaque);
  void refuse(std::int64_t id, int error);
  [[noreturn]] void fail(const std::string& doing, int code, const std::string& words) const;
  std::optional<Refusal> refusal_of_transaction() const;
  // Calls until it succeeds, or throws. The argument: how many milliseconds it may take.
  void attempt(const char* doing, std::chrono::milliseconds limit,
               const std::function<rd_kafka_error_s*(int)>& call) const;
  TransactionError::Kind kind_of(int code) const;

  const Setup setup_;
  std::vector<bool> led_;
  std::size_t rotation_ = 0;
  std::size_t in_hand_ = 0;
  Ends ends_;                   // of the last transaction; 0 if nothing is acknowledged yet
  bool ends_are_known_ = true;  // not if Kafka has taken a record and does not tell its offset
  std::optional<std::chrono::steady_clock::time_point> began_at_;  // and not committed
  std::optional<Refusal> refusal_;
  std::string failure_;  // of the first record that Kafka neither took nor refused
  std::string last_error_;
  StableReader reader_;
  rd_kafka_s* client_ = nullptr;
};

}  // namespace hapax::kafka
