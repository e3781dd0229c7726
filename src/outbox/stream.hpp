// The records of one topic on their way to Kafka, as the relay sees them. It has what both ways
// share. TopicStream sends each record by itself, TransactedStream sends batches in Kafka's
// transactions.
//
// Thread safety: none; it belongs to the relay's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "outbox/cluster.hpp"
#include "store/worker/outbox.hpp"

namespace hapax::outbox {

class Stream {
 public:
  // `letters_wait`: a stream whose first record is a dead letter does not halt if the topic is
  // missing or may not be written. It tries again each second.
  Stream(std::string topic, std::string group, bool letters_wait)
      : topic_(std::move(topic)), group_(std::move(group)), letters_wait_(letters_wait) {}
  virtual ~Stream() = default;

  // Whether Kafka has acknowledged all that was offered.
  bool is_empty() const { return in_hand_.empty(); }
  // What was offered and not acknowledged: ids, and OutboxRow::bytes.
  const std::map<std::int64_t, std::size_t>& in_hand() const { return in_hand_; }
  std::size_t bytes_in_hand() const { return bytes_; }
  // Whether an answer of Kafka's may still come.
  virtual bool is_in_flight() const = 0;

  // False while it is not known what an earlier relay has sent. Then no rows may be read.
  virtual bool takes_rows() const { return true; }
  // `rows` are in the order of ids, and none is in hand. If one has the key of a record in hand, it
  // has a higher id. Precondition: takes_rows().
  void offer(std::vector<store::OutboxRow> rows);

  struct News {
    std::vector<std::int64_t> delivered;  // to be removed one by one
    std::optional<store::SettledBatch> settled;
    std::size_t sent = 0;  // records that Kafka has now
    // A record cannot be sent, or the topic not written. All that was not delivered is forgotten,
    // and must be read again.
    std::optional<store::OutboxHalt> halt;
  };
  // Sends and collects answers. `may_send`: false takes back what librdkafka has not sent yet, and
  // begins nothing.
  // Throws: nothing. Blocks: at most `timeout`.
  virtual News turn(bool may_send, std::chrono::milliseconds timeout) = 0;

  // A batch that PostgreSQL must hold before it is sent, if there is anything to send.
  virtual bool wants_batch() { return false; }
  // Precondition: wants_batch(). The next call takes back what was proposed and not opened.
  virtual store::NextBatch propose() { return {}; }
  // PostgreSQL holds the batch that was proposed last.
  virtual void opened(std::int64_t) {}
  // PostgreSQL holds the halt that turn() asked for.
  virtual void halted(const store::OutboxHalt&) {}
  // The stream ends soon, and answers do not count any more. From now on librdkafka begins no other
  // request with these records. Throws: nothing. Blocks: no.
  virtual void let_go() = 0;
  // Whether another stream may take its place, because it was only made to settle a batch.
  virtual bool is_done() const { return false; }

 protected:
  using Clock = std::chrono::steady_clock;
  // A row that was edited by hand halts when all records before it are acknowledged.
  store::OutboxHalt unreadable(const store::OutboxRow& row) const;
  store::OutboxHalt other_cluster(const Cluster& cluster) const;
  void acknowledge(std::int64_t id);
  void drop_waiting();
  void back_off(const std::string& why);
  // `is_answer`: it is Kafka's, and tells more than that none has come.
  void delayed(const std::string& why, bool is_answer = false);
  void goes_on();
  // A broker knows no topic of this name. True if brokers have answered so for a while, because one
  // with old metadata may answer so for a moment.
  bool topic_is_gone();
  void topic_is_there() { no_topic_.reset(); }
  // Whether the stream waits for its topic instead of halting, because it is one of dead letters.
  bool waits_for_topic() const;

  const std::string topic_, group_;
  std::deque<store::OutboxRow> waiting_;
  Clock::time_point not_before_{};
  Clock::time_point moved_at_ = Clock::now();

 private:
  const bool letters_wait_;
  std::map<std::int64_t, std::size_t> in_hand_;  // all that was offered: their bytes
  std::size_t bytes_ = 0;                        // of all in hand
  std::string said_;                             // why it is delayed
  bool said_an_answer_ = false;                  // of Kafka's
  struct NoTopic {
    Clock::time_point since, last;
  };
  std::optional<NoTopic> no_topic_;  // when a broker first and last knew no such topic
};

// Removes a part of a dead letter, which PostgreSQL keeps whole. False if the row is no letter, or
// no part is left to remove.
bool shrink_letter(store::OutboxRow& row);

}  // namespace hapax::outbox
