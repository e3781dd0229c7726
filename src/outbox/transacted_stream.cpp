#include "outbox/transacted_stream.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <set>
#include <utility>

#include "observe/log.hpp"
#include "outbox/record.hpp"

namespace hapax::outbox {
namespace {

using namespace std::chrono_literals;
namespace log = observe::log;

constexpr std::size_t kMostBytesInBatch = std::size_t{4} << 20;  // so that it is done in time
constexpr std::size_t kSmall = std::size_t{64} << 10;            // bytes; so many never need long
constexpr auto kLeadersAreKnownFor = 1s;
constexpr auto kMarkerIsKnownFor = 1h;  // then it is committed again; Kafka forgets it after 7 days
constexpr auto kSlow = 10s;             // a step that takes longer is worth a line

// As PostgreSQL writes a uuid.
std::string random_token() {
  std::random_device random;
  std::array<unsigned, 4> bits{};
  for (unsigned& part : bits) part = random();
  std::array<char, 37> text{};
  std::snprintf(text.data(), text.size(), "%08x-%04x-%04x-%04x-%04x%08x", bits[0], bits[1] >> 16,
                bits[1] & 0xffff, bits[2] >> 16, bits[2] & 0xffff, bits[3]);
  return text.data();
}

kafka::Delayed warn_if_hidden(const std::string& topic) {
  return [topic](const std::string& why) {
    log::warning("outbox_hanging", {{"topic", topic}, {"error", why}},
                 "consumers with read_committed do not get all that the topic holds: a partition "
                 "has no leader, or a transaction is open, maybe for ever. Or a right is missing: "
                 "then `error` names it. The topic waits");
  };
}

}  // namespace

TransactedStream::TransactedStream(Setup setup)
    : Stream(std::move(setup.topic), std::move(setup.group), setup.letters_wait),
      make_producer_(std::move(setup.make_producer)),
      endings_(setup.endings),
      cluster_(setup.cluster),
      only_settles_(setup.only_settles),
      open_(std::move(setup.open)),
      pace_(setup.limits) {}

TransactedStream::~TransactedStream() {
  stop_.request_stop();
  if (step_.valid()) step_.wait();
}

Stream::News TransactedStream::turn(bool may_send, std::chrono::milliseconds timeout) {
  News news;
  if (step_.valid()) {
    if (step_.wait_for(timeout) == std::future_status::ready)
      conclude(news);
    else if (Clock::now() - moved_at_ > kSlow)
      delayed("Kafka has not answered yet");
    return news;
  }
  news.halt = batch_halt_;
  if (!open_ && !waiting_.empty() && !waiting_.front().unreadable.empty()) {
    news.halt = unreadable(waiting_.front());
    drop_waiting();
  }
  if (may_send && !news.halt && Clock::now() >= not_before_) begin_next();
  return news;
}

// Begins the step with Kafka that must come before the next batch can be proposed, if there is one.
void TransactedStream::begin_next() {
  if (!is_in_doubt() && waiting_.empty()) return;
  const auto now = Clock::now();
  // If a batch is open now, no thread could be started to send it, so it is not on its way.
  const bool was_not_sent = open_ && is_ready_;
  if (was_not_sent || now - looked_at_ > kMarkerIsKnownFor ||
      (is_ready_ && cluster_.judge(producer_->cluster_id()) != Cluster::Reached::right))
    forget_producer();
  if (!is_at_its_cluster_) {
    begin([](auto& producer) { return End(Reached{producer.cluster_id()}); });
  } else if (!is_ready_) {
    begin([this, open = open_, delayed = warn_if_hidden(topic_)](auto& producer) {
      return End(take_over_batch(producer, open, random_token(), delayed));
    });
  } else if (now - looked_at_ > kLeadersAreKnownFor) {
    begin([](auto& producer) {
      producer.look();
      return End(Looked{});
    });
  }
}

void TransactedStream::begin(std::function<End(kafka::TransactionalProducer&)> step) {
  moved_at_ = Clock::now();
  step_ = std::async(
      std::launch::async, [this, step = std::move(step), timeout = pace_.timeout()]() -> End {
        try {
          if (!producer_) producer_ = make_producer_(stop_.get_token(), timeout);
          return step(*producer_);
        } catch (const kafka::TransactionError& error) {
          return Failed{error.what(), error.kind};
        } catch (const std::exception& error) {  // librdkafka refuses the settings, no memory
          return Failed{error.what()};
        }
      });
}

void TransactedStream::conclude(News& news) {
  const End end = step_.get();
  looked_at_ = Clock::now();
  blocked_ = 0;
  if (const auto* failure = std::get_if<Failed>(&end)) failed(*failure, news);
  if (const auto* found = std::get_if<Reached>(&end)) reached(found->cluster, news);
  if (const auto* found = std::get_if<Judged>(&end)) judged(*found, news);
  if (const auto* refusal = std::get_if<Refusal>(&end)) refused(*refusal);
  if (std::holds_alternative<Sent>(end)) sent(news);
}

// If it is in doubt about a batch, a decision about the topic would be one about that batch. So it
// waits then, and asks again.
void TransactedStream::reached(const std::string& cluster, News& news) {
  const auto reached = cluster_.judge(cluster);
  is_at_its_cluster_ = reached == Cluster::Reached::right;
  if (reached != Cluster::Reached::other) return;
  forget_producer();
  if (is_in_doubt()) return back_off(cluster_.words());
  news.halt = other_cluster(cluster_);
  drop_waiting();
}

// The relay's next step writes the verdict to PostgreSQL. Then the batch is not open any more.
void TransactedStream::judged(const Judged& judged, News& news) {
  if (judged.verdict == Verdict::marker_lost)
    return halt_batch("marker_lost",
                      "Kafka does not hold the marker of this topic any more (deleted? another "
                      "cluster?), so it cannot be known whether Kafka has the batch" +
                          (judged.topic_error.empty() ? "" : "; " + judged.topic_error));
  if (judged.verdict == Verdict::tail_lost)
    log::warning("outbox_tail_lost", {{"topic", topic_}, {"batch", open_->number}},
                 "Kafka has a later batch than PostgreSQL, which has lost its newest transactions: "
                 "records may come again, with equal keys");
  held_ = judged.held;
  is_ready_ = true;
  topic_is_there();  // the take-over has seen it; the refusal of the batch may be older
  if (judged.verdict == Verdict::sent) return sent(news);
  if (open_) news.settled = store::SettledBatch{topic_, open_->token, false};
  open_.reset();
  goes_on();
  const auto refusal = std::exchange(refusal_, std::nullopt);
  const std::size_t size = take_back();
  if (refusal) conclude(*refusal, size, news);
}

// The stream changes nothing until PostgreSQL holds the halt.
void TransactedStream::halt_batch(const std::string& reason, const std::string& detail) {
  forget_producer();
  batch_halt_ = store::OutboxHalt{.topic = topic_,
                                  .reason = reason,
                                  .detail = detail + " (batch " + std::to_string(open_->number) +
                                            " with " + std::to_string(open_->records) + " records)",
                                  .batch = open_->token};
}

void TransactedStream::halted(const store::OutboxHalt& halt) {
  if (!open_ || halt.batch != open_->token) return;
  batch_halt_.reset();
  open_->follows = open_->token;
  open_->records = 0;
  sending_.reset();
  refusal_.reset();
  drop_waiting();
}

void TransactedStream::sent(News& news) {
  news.settled = store::SettledBatch{topic_, open_->token, true};
  news.sent = open_->records;
  held_ = {open_->number, open_->token};
  if (sending_)
    for (const auto& [row, partition] : sending_->rows) acknowledge(row.id);
  sending_.reset();
  open_.reset();
  refusal_.reset();
  const auto timeout = pace_.timeout();
  pace_.sent(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - moved_at_));
  if (pace_.timeout() != timeout) forget_producer();
  goes_on();
  topic_is_there();
}

// A step with Kafka failed. If there is a batch, Kafka may have it.
void TransactedStream::failed(const Failed& failed, News& news) {
  using Kind = kafka::TransactionError::Kind;
  const bool was_sending = sending_ && is_ready_;
  if (was_sending) not_sent(failed);
  forget_producer();
  if (failed.kind == Kind::lost) return lost(failed, was_sending);
  const bool refused = failed.kind == Kind::refused ||
                       (failed.kind == Kind::no_topic && topic_is_gone()) ||
                       (failed.kind == Kind::too_long && !pace_.shorter());
  if (!refused || waits_for_topic() || is_in_doubt()) return back_off(failed.error);
  news.halt = store::OutboxHalt{.topic = topic_, .reason = "topic_refused", .detail = failed.error};
  drop_waiting();
}

// While it sends, the step waits for records only after the commit. While it judges, it waits for
// records that earlier transactions may have left.
void TransactedStream::lost(const Failed& failed, bool was_committed) {
  if (!is_in_doubt()) return back_off(failed.error);
  halt_batch("records_lost",
             (was_committed ? "Kafka has committed a batch and does not hold it any more: "
                            : "Kafka has lost records while a batch waited for its end: ") +
                 failed.error);
}

// Kafka may be too slow for so many records, or for one that is so large. A small record is not the
// cause, because its leader answers even while it waits for replicas (min.insync.replicas).
void TransactedStream::not_sent(const Failed& failed) {
  const std::size_t size = sending_->rows.size();
  pace_.smaller(size);
  if (size > 1 || failed.kind != kafka::TransactionError::Kind::slow) return;
  const store::OutboxRow& row = sending_->rows.front().first;
  if (bytes_of(record_of(row, group_)) <= kSmall) return;
  const std::int64_t id = row.id;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(pace_.timeout()).count();
  if (pace_.longer())
    log::warning("outbox_slow", {{"topic", topic_}, {"record", id}, {"seconds", seconds}},
                 "Kafka has not taken a record in this time: its next transaction may take longer");
  else
    refusal_ = Refusal{{id, kafka::StreamAnswer::Result::refused_record,
                        "Kafka has not taken it within " + std::to_string(seconds) +
                            " s, though it answers: " + failed.error},
                       1};
}

// The transaction is still open. The next producer ends it, and judges the batch.
void TransactedStream::refused(const Refusal& refusal) {
  forget_producer();
  refusal_ = refusal;
}

void TransactedStream::conclude(const Refusal& refusal, std::size_t size, News& news) {
  using Result = kafka::StreamAnswer::Result;
  const kafka::StreamAnswer& first = refusal.first;
  if (kafka::is_about_topic(first.result)) {
    if (waits_for_topic() || (first.result == Result::no_topic && !topic_is_gone()))
      return back_off(first.error);
    news.halt =
        store::OutboxHalt{.topic = topic_, .reason = "topic_refused", .detail = first.error};
  } else if (size > 1) {
    pace_.smaller(std::min(refusal.records, size));
  } else {
    const auto row = std::ranges::find(waiting_, first.id, &store::OutboxRow::id);
    if (first.result == Result::too_large && row != waiting_.end() && shrink_letter(*row)) return;
    news.halt = store::OutboxHalt{
        .topic = topic_, .row = first.id, .reason = "record_refused", .detail = first.error};
  }
  if (news.halt) drop_waiting();
}

// The rows of the batch wait again, in the order of ids. Returns how many there were.
std::size_t TransactedStream::take_back() {
  if (!sending_) return 0;
  const std::size_t size = sending_->rows.size();
  for (auto& [row, partition] : sending_->rows) waiting_.push_back(std::move(row));
  std::ranges::sort(waiting_, {}, &store::OutboxRow::id);
  sending_.reset();
  return size;
}

void TransactedStream::forget_producer() {
  endings_.end(std::move(producer_));
  is_at_its_cluster_ = is_ready_ = false;
}

// If a partition has no leader, its records wait here, and with them all records of their keys.
bool TransactedStream::wants_batch() {
  if (!is_ready_ || step_.valid() || open_ || Clock::now() - looked_at_ > kLeadersAreKnownFor ||
      Clock::now() < not_before_ || waiting_.size() == blocked_)
    return false;
  for (const store::OutboxRow& row : waiting_) {
    if (!row.unreadable.empty()) break;
    if (producer_->partition_of(row.key)) return true;
  }
  blocked_ = waiting_.size();
  return false;
}

store::NextBatch TransactedStream::propose() {
  store::NextBatch next{topic_, random_token(), held_.token, held_.number, {}};
  std::size_t bytes = 0;
  for (const store::OutboxRow& row : waiting_) {
    if (!row.unreadable.empty() || next.ids.size() == pace_.most()) break;
    if (!producer_->partition_of(row.key)) continue;
    bytes += in_hand().at(row.id);
    if (bytes > kMostBytesInBatch && !next.ids.empty()) break;
    next.ids.push_back(row.id);
  }
  proposed_ = next;
  return next;
}

void TransactedStream::opened(std::int64_t number) {
  const store::NextBatch& next = *proposed_;
  open_ = store::OpenBatch{number, next.token, next.follows, next.ids.size()};
  sending_ = Batch{{number, next.token}, group_, {}};
  const std::set<std::int64_t> ids(next.ids.begin(), next.ids.end());
  std::deque<store::OutboxRow> left;
  for (store::OutboxRow& row : waiting_) {
    if (!ids.contains(row.id)) {
      left.push_back(std::move(row));
      continue;
    }
    const std::int32_t partition = producer_->partition_of(row.key).value();
    sending_->rows.emplace_back(std::move(row), partition);
  }
  waiting_ = std::move(left);
  begin([this, hidden = warn_if_hidden(topic_)](kafka::TransactionalProducer& producer) {
    const auto refusal = send_batch(producer, *sending_, hidden);
    return refusal ? End(*refusal) : End(Sent{});
  });
}

}  // namespace hapax::outbox
