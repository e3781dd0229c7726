#include "outbox/topic_stream.hpp"

#include <algorithm>
#include <utility>

#include "flow/crash_point.hpp"
#include "outbox/record.hpp"

namespace hapax::outbox {
namespace {

using namespace std::chrono_literals;
using Result = kafka::StreamAnswer::Result;

// At so many records at a time, the stream counts as undisturbed.
constexpr std::size_t kAllAgain = 4096;
// For answers to records that were sent before the producer stopped.
constexpr auto kForAnswers = 10s;
constexpr auto kLongWithoutAnswer = 10s;

}  // namespace

Stream::News TopicStream::turn(bool may_send, std::chrono::milliseconds timeout) {
  News news;
  if (is_empty() || (!producer_ && !may_send) || !has_producer()) return news;
  if (!may_send && !sent_.empty()) producer_->stop();
  const bool may_feed = reaches_its_cluster();
  if (may_send && may_feed && !waiting_.empty() && !producer_->stopped()) feed();
  for (const kafka::StreamAnswer& answer : producer_->poll(timeout)) {
    if (answer.result == Result::delivered) {
      sent_.erase(answer.id);
      acknowledge(answer.id);
      news.delivered.push_back(answer.id);
      continue;
    }
    if (answer.result == Result::refused_record || answer.result == Result::too_large ||
        kafka::is_about_topic(answer.result)) {
      ++refused_;
      if (!refusal_ || answer.id < refusal_->id) refusal_ = answer;
    } else if (answer.result == Result::unknown) {
      failure_ = answer.error;
    }
  }
  news.sent = news.delivered.size();
  if (news.sent > 0) {
    goes_on();
    topic_is_there();
  }
  if (sent_.empty() && is_unreadable_next()) {
    news.halt = unreadable(waiting_.front());
    drop_waiting();
  }
  if (producer_->stopped()) {
    if (stopped_at_ == Clock::time_point{}) stopped_at_ = Clock::now();
    if (Clock::now() - stopped_at_ > kForAnswers) producer_->abandon();
    if (producer_->in_hand() == 0) conclude(news);
  } else if (may_feed && sent_.empty() && at_a_time_ > 0) {
    at_a_time_ = at_a_time_ * 2 < kAllAgain ? at_a_time_ * 2 : 0;
  } else if ((!sent_.empty() || !may_feed) && Clock::now() - moved_at_ > kLongWithoutAnswer) {
    delayed(producer_->last_error().empty() ? "no broker has answered yet"
                                            : producer_->last_error());
  }
  return news;
}

void TopicStream::let_go() {
  if (producer_) producer_->abandon();
}

bool TopicStream::has_producer() {
  if (producer_) return true;
  if (Clock::now() < not_before_) return false;
  try {
    producer_ = make_producer_();
    return true;
  } catch (const std::runtime_error& error) {
    back_off(error.what());
    return false;
  }
}

// If not, takes back what it holds: librdkafka would send it to the other cluster.
bool TopicStream::reaches_its_cluster() {
  const auto reached = cluster_.judge(producer_->cluster_id());
  if (reached == Cluster::Reached::other && !std::exchange(reached_another_, true))
    producer_->abandon();
  return reached == Cluster::Reached::right;
}

bool TopicStream::is_unreadable_next() const {
  return !waiting_.empty() && !waiting_.front().unreadable.empty();
}

void TopicStream::feed() {
  std::size_t room = waiting_.size();
  if (at_a_time_ > 0) room = sent_.empty() ? std::min(room, at_a_time_) : 0;
  for (; room > 0 && !producer_->stopped() && !is_unreadable_next(); --room) {
    const kafka::OutgoingRecord record = record_of(waiting_.front(), group_);
    if (!producer_->takes(record)) break;
    store::OutboxRow row = std::move(waiting_.front());
    waiting_.pop_front();
    const std::int64_t id = row.id;
    sent_.emplace(id, std::move(row));
    producer_->send(record, id);
  }
  flow::crash_point("outbox_offered");
}

// The producer has stopped, and each record has its answer. Another producer sends the undelivered
// records again, in the order of ids.
void TopicStream::conclude(News& news) {
  const std::string failure = std::exchange(failure_, {});
  const std::string why = producer_->last_error().empty() ? failure : producer_->last_error();
  const auto refusal = std::exchange(refusal_, std::nullopt);
  const std::size_t refused = std::exchange(refused_, 0);
  const bool alone = at_a_time_ == 1;
  const bool reached_another = std::exchange(reached_another_, false);
  endings_.end(std::move(producer_));
  stopped_at_ = {};
  for (auto row = sent_.rbegin(); row != sent_.rend(); ++row)
    waiting_.push_front(std::move(row->second));
  sent_.clear();
  const bool about_topic = refusal && kafka::is_about_topic(refusal->result);
  if (!about_topic) topic_is_there();  // as far as this attempt tells
  if (reached_another) {
    news.halt = other_cluster(cluster_);
  } else if (about_topic &&
             (waits_for_topic() || (refusal->result == Result::no_topic && !topic_is_gone()))) {
    back_off(refusal->error);
  } else if (about_topic) {
    news.halt =
        store::OutboxHalt{.topic = topic_, .reason = "topic_refused", .detail = refusal->error};
  } else if (refused > 0 && alone && refusal->result == Result::too_large &&
             shrink_letter(waiting_.front())) {
    // The letter is sent again without its payload.
  } else if (refused > 0 && alone) {
    news.halt = store::OutboxHalt{
        .topic = topic_, .row = refusal->id, .reason = "record_refused", .detail = refusal->error};
  } else if (refused > 0) {
    at_a_time_ = std::max<std::size_t>(1, refused / 2);
  } else {
    back_off(why);
  }
  if (news.halt) drop_waiting();
}

}  // namespace hapax::outbox
