#include "outbox/stream.hpp"

#include <utility>

#include "observe/log.hpp"
#include "outbox/letter_record.hpp"

namespace hapax::outbox {
namespace {

constexpr auto kBackOff = std::chrono::seconds(1);
constexpr auto kGoneForGood = std::chrono::seconds(10);
constexpr auto kAnswerIsOld = std::chrono::seconds(30);  // if no broker has answered for so long

}  // namespace

void Stream::offer(std::vector<store::OutboxRow> rows) {
  if (is_empty()) moved_at_ = Clock::now();
  for (store::OutboxRow& row : rows) {
    in_hand_.emplace(row.id, row.bytes);
    bytes_ += row.bytes;
    waiting_.push_back(std::move(row));
  }
}

store::OutboxHalt Stream::unreadable(const store::OutboxRow& row) const {
  return {.topic = topic_, .row = row.id, .reason = "record_unreadable", .detail = row.unreadable};
}

store::OutboxHalt Stream::other_cluster(const Cluster& cluster) const {
  return {.topic = topic_, .row = {}, .reason = kOtherCluster, .detail = cluster.words()};
}

void Stream::acknowledge(std::int64_t id) {
  bytes_ -= in_hand_.at(id);
  in_hand_.erase(id);
}

void Stream::drop_waiting() {
  waiting_.clear();
  in_hand_.clear();
  bytes_ = 0;
}

void Stream::back_off(const std::string& why) {
  not_before_ = Clock::now() + kBackOff;
  delayed(why, true);
}

// Logs one line while the kind of reason stays the same, because its words differ each time.
void Stream::delayed(const std::string& why, bool is_answer) {
  const bool is_new = said_.empty() || (is_answer && !said_an_answer_);
  said_ = why;
  said_an_answer_ = is_answer || (said_an_answer_ && !is_new);
  if (!is_new) return;
  observe::log::warning("outbox_delayed", {{"topic", topic_}, {"error", why}},
                        "Kafka does not take published records; they wait in hapax.outbox, and "
                        "the relay tries on");
}

void Stream::goes_on() {
  moved_at_ = Clock::now();
  if (std::exchange(said_, {}).empty()) return;
  observe::log::info("outbox_goes_on", {{"topic", topic_}}, "published records are sent again");
}

bool Stream::waits_for_topic() const {
  return letters_wait_ && (waiting_.empty() || is_letter(waiting_.front()));
}

bool Stream::topic_is_gone() {
  const auto now = Clock::now();
  if (!no_topic_ || now - no_topic_->last > kAnswerIsOld) no_topic_ = NoTopic{now, now};
  no_topic_->last = now;
  return now - no_topic_->since >= kGoneForGood;
}

bool shrink_letter(store::OutboxRow& row) {
  if (!is_letter(row)) return false;
  const std::size_t bytes = row.payload.value_or("").size();
  if (!shrink(row)) return false;
  observe::log::warning(
      "dead_letter_too_large",
      {{"dead_letter", letter_id(row)}, {"dead_letter_topic", row.topic}, {"payload_bytes", bytes}},
      "the dead letter topic takes no record of this size (max.message.bytes): "
      "publishing it without its payload; `hapax dead show` has all of it");
  return true;
}

}  // namespace hapax::outbox
