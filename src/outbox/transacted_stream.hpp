// The records of one topic on their way to Kafka in transactions (publish.transactions), so that
// consumers with read_committed see each record once, through all crashes.
//
//   judge the last batch ─▶ propose the next one ─▶ PostgreSQL holds it ─▶ Kafka commits it ─▶
//   settled
//         ▲                                                                   │ any failure
//         └───────────────────────────────────────────────────────────────────┘
//
// The relay's thread does all steps with PostgreSQL, and for each step with Kafka there is a
// thread. So an outage of PostgreSQL never keeps a transaction of Kafka open.
//
// Thread safety: none; it belongs to the relay's thread.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "outbox/endings.hpp"
#include "outbox/pace.hpp"
#include "outbox/stream.hpp"
#include "outbox/transaction.hpp"

namespace hapax::outbox {

class TransactedStream final : public Stream {
 public:
  using MakeProducer = std::function<std::unique_ptr<kafka::TransactionalProducer>(
      const std::stop_token&, std::chrono::milliseconds transaction_timeout)>;

  struct Setup {
    std::string topic, group;
    MakeProducer make_producer;
    Endings& endings;  // outlives it
    Cluster& cluster;  // outlives it
    bool letters_wait = false;
    // The batch of an earlier relay that PostgreSQL holds.
    std::optional<store::OpenBatch> open = {};
    // publish.transactions is off now, so the stream only finds out what became of `open`.
    bool only_settles = false;
    Pace::Limits limits = {};
  };
  explicit TransactedStream(Setup setup);
  // Aborts an open transaction, or the next relay finds it committed. Blocks: seconds.
  ~TransactedStream() override;

  bool is_in_flight() const override { return sending_.has_value() && step_.valid(); }
  bool takes_rows() const override { return open_ ? sending_ || !is_in_doubt() : !only_settles_; }
  News turn(bool may_send, std::chrono::milliseconds timeout) override;
  // If it still sends records, consumers never see them, because the next relay first takes the
  // transactional id.
  void let_go() override { stop_.request_stop(); }
  bool wants_batch() override;
  store::NextBatch propose() override;
  void opened(std::int64_t number) override;
  void halted(const store::OutboxHalt& halt) override;
  bool is_done() const override { return only_settles_ && !open_ && !step_.valid(); }

 private:
  struct Failed {
    std::string error;
    kafka::TransactionError::Kind kind = kafka::TransactionError::Kind::failed;
  };
  using Refusal = kafka::TransactionalProducer::Refusal;
  struct Sent {};
  struct Looked {};
  struct Reached {
    std::string cluster;
  };
  using End = std::variant<Failed, Reached, Judged, Sent, Refusal, Looked>;

  void begin(std::function<End(kafka::TransactionalProducer&)> step);
  void begin_next();
  void conclude(News& news);
  void reached(const std::string& cluster, News& news);
  void judged(const Judged& judged, News& news);
  void sent(News& news);
  void failed(const Failed& failed, News& news);
  void refused(const Refusal& refusal);
  void not_sent(const Failed& failed);
  bool is_in_doubt() const { return open_ && !open_->is_halted(); }
  void lost(const Failed& failed, bool was_committed);
  void halt_batch(const std::string& reason, const std::string& detail);
  void conclude(const Refusal& refusal, std::size_t size, News& news);
  std::size_t take_back();
  void forget_producer();

  const MakeProducer make_producer_;
  Endings& endings_;
  Cluster& cluster_;
  const bool only_settles_;
  // The batch that PostgreSQL holds and whose outcome is not known. Or the batch that has halted
  // the topic: PostgreSQL returns no rows until an operator has decided. Then a transaction that is
  // open in Kafka must end first.
  std::optional<store::OpenBatch> open_;
  std::optional<Batch> sending_;                 // the same batch, if this relay has its rows
  std::optional<Refusal> refusal_;               // why that batch was not committed
  std::optional<store::OutboxHalt> batch_halt_;  // an operator must settle that batch
  std::optional<store::NextBatch> proposed_;
  Pace pace_;
  kafka::Marker held_;             // that Kafka holds
  Clock::time_point looked_at_{};  // for partitions with a leader
  // So many records wait, and none of them can be sent; 0: not known.
  std::size_t blocked_ = 0;
  bool is_at_its_cluster_ = false;  // the producer
  bool is_ready_ = false;           // the producer has judged, and may send
  // While a step runs, only the step uses it.
  std::unique_ptr<kafka::TransactionalProducer> producer_;
  std::stop_source stop_;
  std::future<End> step_;
};

}  // namespace hapax::outbox
