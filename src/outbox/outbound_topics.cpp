#include "outbox/outbound_topics.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "flow/crash_point.hpp"
#include "outbox/make_stream.hpp"

namespace hapax::outbox {
namespace {

constexpr std::size_t kPortionBytes = std::size_t{8} << 20;  // as kPortionRows
constexpr auto kLook = std::chrono::seconds(10);

}  // namespace

void OutboundTopics::begin(std::map<std::string, store::OpenBatch> open) {
  open_batches_ = std::move(open);
  look_at_ = {};
}

void OutboundTopics::forget() {
  topics_.clear();
  open_batches_.clear();
}

void OutboundTopics::look(store::Session& session) {
  const auto now = std::chrono::steady_clock::now();
  if (now < look_at_) return;
  look_at_ = now + kLook;
  for (const auto& [name, limit] : setup_.topics) at(name);
  for (const auto& [consumed, name] : setup_.letters) at(name);
  for (const auto& [name, batch] : open_batches_) at(name);
  std::set<std::string> known;
  for (const auto& [name, topic] : topics_) known.insert(name);
  for (const std::string& name : store::new_outbox_topics(session, setup_.group, known)) at(name);
}

OutboundTopic& OutboundTopics::at(const std::string& name) {
  const auto found = topics_.find(name);
  return found != topics_.end() ? found->second : topics_.emplace(name, make(name)).first->second;
}

OutboundTopic OutboundTopics::make(const std::string& name) {
  const auto limit = setup_.topics.find(name);
  const auto open = open_batches_.find(name);
  StreamSetup stream{name, setup_.group, setup_.properties};
  if (limit != setup_.topics.end()) stream.largest = limit->second;
  stream.letters_wait = !setup_.topics.contains(name);
  stream.transactions = setup_.transactions;
  if (open != open_batches_.end()) stream.open = open->second;
  return OutboundTopic({make_stream(stream, endings_, cluster_).release(), EndsLater{&endings_}});
}

std::vector<store::OutboxHalt> OutboundTopics::turn(bool may_send,
                                                    std::chrono::milliseconds timeout,
                                                    Unremoved& unremoved) {
  std::vector<store::OutboxHalt> halts;
  for (auto& [name, topic] : topics_) {
    Stream::News news = topic.stream().turn(may_send, timeout / static_cast<int>(topics_.size()));
    unremoved.add(name, news);
    if (news.settled) open_batches_.erase(name);
    if (news.sent > 0) metrics_.outbox_sent(name, news.sent);
    if (!news.delivered.empty()) flow::crash_point("outbox_sent");
    if (!news.halt) continue;
    topic.read_all_again();  // reads what was not sent
    halts.push_back(std::move(*news.halt));
  }
  return halts;
}

void OutboundTopics::halted(const store::OutboxHalt& halt) {
  topics_.at(halt.topic).stream().halted(halt);
  if (!halt.batch.empty()) open_batches_.erase(halt.topic);
}

store::OutboxStep OutboundTopics::next_step() {
  if (std::erase_if(topics_, [](const auto& t) { return t.second.stream().is_done(); }) > 0)
    look_at_ = {};
  store::OutboxStep step{{}, {}, kPortionRows, kPortionBytes, setup_.lease};
  for (auto& [name, topic] : topics_) {
    topic.ask(name, step);
    if (topic.stream().wants_batch()) step.next.push_back(topic.stream().propose());
  }
  return step;
}

bool OutboundTopics::have_more(const store::OutboxStep& step) const {
  return std::ranges::any_of(step.topics,
                             [&](const auto& t) { return topics_.at(t.first).has_more(); });
}

void OutboundTopics::opened(const store::OutboxStep& step, const store::OutboxRead& read) {
  if (!step.next.empty()) flow::crash_point("outbox_batch_opened");
  for (std::size_t i = 0; i < step.next.size(); ++i)
    topics_.at(step.next[i].topic).stream().opened(read.numbers[i]);
}

void OutboundTopics::take(const store::OutboxStep& step, store::OutboxRead read) {
  std::map<std::string, std::vector<store::OutboxRow>> rows;
  for (store::OutboxRow& row : read.rows) rows[row.topic].push_back(std::move(row));
  for (const auto& [name, mark] : step.topics)
    topics_.at(name).take(std::move(rows[name]), name, step, read);
}

void OutboundTopics::read_all_again() {
  for (auto& [name, topic] : topics_) topic.read_all_again();
}

bool OutboundTopics::have_records() const {
  return std::ranges::any_of(topics_, [](const auto& t) { return !t.second.stream().is_empty(); });
}

bool OutboundTopics::are_in_flight() const {
  return std::ranges::any_of(topics_,
                             [](const auto& t) { return t.second.stream().is_in_flight(); });
}

std::map<std::string, std::int64_t> OutboundTopics::marks() const {
  std::map<std::string, std::int64_t> marks;
  for (const auto& [name, topic] : topics_) marks[name] = topic.mark();
  return marks;
}

}  // namespace hapax::outbox
