#include "outbox/relay.hpp"

#include <algorithm>
#include <random>

#include "flow/crash_point.hpp"
#include "observe/log.hpp"
#include "outbox/make_stream.hpp"
#include "store/worker/checkpoints.hpp"

namespace hapax::outbox {
namespace {

using namespace std::chrono_literals;
namespace log = observe::log;

constexpr std::size_t kMostBytes = std::size_t{16} << 20;  // of a topic, in hand
// The next portion is read while Kafka gets the one before: up to six times as fast.
constexpr std::size_t kPortionRows = kMostRows / 2;
constexpr std::size_t kPortionBytes = kMostBytes / 2;
constexpr auto kLook = 100ms;      // between two looks for records, unless nudged
constexpr auto kPoll = 5ms;        // for Kafka's answers
constexpr auto kTurn = 1ms;        // between two turns while records are on their way
constexpr auto kRemove = 50ms;     // an acknowledged record is removed so much later at most
constexpr int kRenewals = 5;       // of the lease, while it lasts
constexpr auto kAskLease = 1s;     // while another relay has it
constexpr auto kAskTopics = 10s;   // for rows of topics that are not configured any more
constexpr auto kTryAgain = 500ms;  // after an error of PostgreSQL's
constexpr auto kOnceStopped = 1s;  // for answers that are on their way

std::string with_nonce(const std::string& name) {
  std::random_device random;
  return name + " " + std::to_string(random()) + std::to_string(random());
}

}  // namespace

Relay::Relay(RelaySetup setup, observe::Metrics& metrics)
    : setup_(std::move(setup)),
      holder_(with_nonce(setup_.name)),
      metrics_(metrics),
      gauges_(metrics, setup_.group, setup_.letters),
      letters_(setup_.group, setup_.letters) {}

// The way of published records, once around. A record is sent only after a synchronous COMMIT that
// came after it was read (P4), and removed only after Kafka has acknowledged it (P1).
void Relay::turn() {
  if (!leads()) return;
  move_letters();
  collect_answers();
  if (!is_due()) return;
  store::OutboxStep step = next_step();
  propose(step);
  auto read = store::step_outbox(*session_, *lease_, step);
  if (!read) return forget();
  fenced_at_ = read->fenced_at;
  said_.clear();
  if (!std::exchange(acknowledged_, {}).empty()) flow::crash_point("outbox_removed");
  if (!std::exchange(settled_, {}).empty()) flow::crash_point("outbox_batch_settled");
  opened(step, *read);
  if (!read->rows.empty()) {
    peek_at_ = {};  // there may be more
    flow::crash_point("outbox_fenced");
  }
  if (!a_halt_ended(*read)) send(std::move(*read), step);
}

void Relay::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      turn();
    } catch (const std::exception& error) {  // PostgreSQL's, or a row that was edited by hand
      // What is in hand stays: the next step finds out whether the lease is still ours.
      session_.reset();
      hold_back();
      if (std::exchange(said_, error.what()).empty())
        log::warning("outbox_waits", {{"error", error.what()}},
                     "PostgreSQL does not let the relay work; it tries again");
      sync::Lock lock(mutex_);
      woken_.wait_for(lock.waitable(), stop, kTryAgain, [] { return false; });
    }
    rest(stop);
  }
  leave();
}

void Relay::nudge() {
  {
    const sync::Lock lock(mutex_);
    nudged_ = true;
  }
  woken_.notify_one();
}

void Relay::rest(const std::stop_token& stop) {
  const bool moving = has_records() || has_answers();
  sync::Lock lock(mutex_);
  woken_.wait_for(lock.waitable(), stop, moving ? kTurn : kLook,
                  [this]() HAPAX_REQUIRES(mutex_) { return nudged_; });
  if (std::exchange(nudged_, false)) peek_at_ = {};
}

bool Relay::has_records() const {
  return std::ranges::any_of(topics_, [](const auto& t) { return !t.second.stream->is_empty(); });
}

bool Relay::leads() {
  if (!session_) session_.emplace(setup_.connect());
  if (!lease_ && Clock::now() >= ask_lease_) take_over();
  return lease_.has_value();
}

// A copy of the database must not publish the original's records, so that is asked each time.
void Relay::take_over() {
  ask_lease_ = Clock::now() + kAskLease;
  if (!store::has_outbox(*session_)) return;
  const store::StoreIdentity store = store::read_store(*session_);
  if (store.copied) {
    if (std::exchange(said_, "copied") != "copied")
      log::warning("outbox_copied", {{"found", store.facts}},
                   "the database is a copy, so nothing is published; see store_copied in the docs");
    session_.reset();
    return;
  }
  if (!store::may_read_batches(*session_)) {
    if (std::exchange(said_, "batches") != "batches")
      log::warning("outbox_waits", {{"error", "no SELECT on hapax.outbox_batches"}},
                   "a batch may be open that this relay must not send again; run sql/roles.sql");
    session_.reset();
    return;
  }
  const auto asked = Clock::now();
  auto lease =
      store::take_outbox_lease(*session_, setup_.group, holder_, store.incarnation, setup_.lease);
  if (!lease) return;
  // Before the lease counts: if this fails, it is taken once more, and the batches read again.
  open_batches_ = store::read_open_batches(*session_, setup_.group);
  lease_ = std::move(lease);
  said_.clear();
  fenced_at_ = asked;
  store_id_ = store.id;
  look_again_ = {};
  letters_.look_again();
  sweep_at_ = asked + setup_.sweep;
  log::info("outbox_taken", {{"group", setup_.group}, {"epoch", lease_->epoch}},
            "this relay sends the group's published records");
  flow::crash_point("outbox_taken");
}

// Another relay has taken over, or ids may name other rows after PostgreSQL lost its tail.
void Relay::forget() {
  topics_.clear();  // first, because librdkafka sends on until then
  log::warning("outbox_lost", {{"group", setup_.group}},
               "another relay has the lease, or PostgreSQL was restarted: beginning again");
  lease_.reset();
  acknowledged_.clear();
  settled_.clear();
  open_batches_.clear();
  gauges_.forget();
}

void Relay::move_letters() {
  const auto moved =
      letters_.move(*session_, *lease_, setup_.lease, store_id_,
                    [this](const std::string& to) { return topic(to).stream->is_empty(); });
  if (moved == LetterMover::Moved::lease_lost) return forget();
  if (moved == LetterMover::Moved::none) return;
  peek_at_ = {};
  flow::crash_point("dead_letters_moved");
}

void Relay::collect_answers() {
  const bool may_send = lease_is_fresh();
  std::vector<store::OutboxHalt> halts;
  for (auto& [name, topic] : topics_) {
    const auto poll = kPoll / static_cast<int>(topics_.size());
    Stream::News news = topic.stream->turn(may_send, poll);
    take_news(name, news);
    if (!news.delivered.empty()) flow::crash_point("outbox_sent");
    if (!news.halt) continue;
    topic.low_water.reset();  // what was not sent is read again
    halts.push_back(std::move(*news.halt));
  }
  for (const store::OutboxHalt& wanted : halts)
    if (lease_) halt(wanted);
  std::erase_if(topics_, [](const auto& t) { return t.second.stream->is_done(); });
}

void Relay::take_news(const std::string& topic, const Stream::News& news) {
  if (acknowledged_.empty()) removing_since_ = Clock::now();
  for (const std::int64_t id : news.delivered) acknowledged_.emplace_back(topic, id);
  if (news.settled) {
    settled_.push_back(*news.settled);
    open_batches_.erase(topic);
    look_again_ = {};
  }
  if (news.sent > 0) metrics_.outbox_sent(topic, news.sent);
}

// Without PostgreSQL the lease may have ended, and another relay may send the same records. What
// librdkafka still holds would come behind theirs.
void Relay::hold_back() {
  if (lease_is_fresh()) return;
  for (auto& [name, topic] : topics_) {
    const Stream::News news = topic.stream->turn(false, {});
    take_news(name, news);
    if (news.halt) topic.low_water.reset();  // what was not sent is read again, and refused again
  }
}

void Relay::halt(const store::OutboxHalt& halt) {
  if (!store::halt_outbox(*session_, *lease_, halt, setup_.name)) return forget();
  topics_.at(halt.topic).stream->halted(halt);
  if (!halt.batch.empty()) open_batches_.erase(halt.topic);
  log::error("outbox_halted",
             {{"topic", halt.topic},
              {"record", halt.row.value_or(0)},
              {"reason", halt.reason},
              {"error", halt.detail}},
             halt.row
                 ? "a published record cannot be sent: it and later ones with its key wait "
                   "until `hapax outbox retry` or `hapax outbox skip`"
                 : "the records of a topic cannot be sent: they wait until `hapax outbox retry`");
  flow::crash_point("outbox_halted");
}

bool Relay::is_due() {
  if (!lease_) return false;
  look_for_topics();
  sweep();
  const auto now = Clock::now();
  if (now - fenced_at_ > std::chrono::milliseconds(setup_.lease) / kRenewals || !settled_.empty())
    return true;
  if (std::ranges::any_of(topics_, [](auto& t) { return t.second.stream->wants_batch(); }))
    return true;
  if (!acknowledged_.empty() &&
      (acknowledged_.size() >= kPortionRows || !has_records() || now - removing_since_ > kRemove))
    return true;
  const store::OutboxStep next = next_step();
  if (std::ranges::any_of(next.topics, [this](const auto& t) { return topics_.at(t.first).more; }))
    return true;
  if (now < peek_at_ || next.topics.empty()) return false;
  peek_at_ = now + kLook;
  return store::peek_outbox(*session_, setup_.group, next.topics, next.in_hand);
}

// Topics that are configured, and those of rows that an earlier configuration left.
void Relay::look_for_topics() {
  if (Clock::now() < look_again_) return;
  look_again_ = Clock::now() + kAskTopics;
  for (const auto& [name, limit] : setup_.topics) topic(name);
  for (const auto& [consumed, name] : setup_.letters) topic(name);
  for (const auto& [name, batch] : open_batches_) topic(name);
  std::set<std::string> known;
  for (const auto& [name, topic] : topics_) known.insert(name);
  for (const std::string& name : store::new_outbox_topics(*session_, setup_.group, known))
    topic(name);
}

Relay::Topic& Relay::topic(const std::string& name) {
  if (const auto found = topics_.find(name); found != topics_.end()) return found->second;
  const auto limit = setup_.topics.find(name);
  const auto open = open_batches_.find(name);
  StreamSetup stream{name, setup_.group, setup_.properties};
  if (limit != setup_.topics.end()) stream.largest = limit->second;
  stream.waits_for_topic = !stream.largest && letters_.is_for_letters(name);
  stream.transactions = setup_.transactions;
  if (open != open_batches_.end()) stream.open = open->second;
  std::unique_ptr<Stream, EndsLater> made(make_stream(stream, endings_).release(), {&endings_});
  return topics_.emplace(name, Topic{std::move(made)}).first->second;
}

// The id behind which a topic has records that were not removed.
std::int64_t Relay::mark_of(const Topic& topic) {
  const std::int64_t mark = topic.low_water.last_mark();
  if (topic.stream->is_empty()) return mark;
  return std::min(mark, topic.stream->in_hand().begin()->first - 1);
}

// A net below the low-water marks. It may walk long, so it has a session of its own.
void Relay::sweep() {
  if (sweep_.valid() && sweep_.wait_for(0s) == std::future_status::ready) {
    try {
      for (const std::string& name : sweep_.get()) topic(name).low_water.reset();
      peek_at_ = {};
    } catch (const store::DatabaseError&) {
      // There is another sweep in a minute.
    }
  }
  if (sweep_.valid() || Clock::now() < sweep_at_) return;
  sweep_at_ = Clock::now() + setup_.sweep;
  std::map<std::string, std::int64_t> marks;
  for (const auto& [name, topic] : topics_) marks[name] = mark_of(topic);
  sweep_ = std::async(std::launch::async, [connect = setup_.connect, group = setup_.group, marks] {
    store::Session session(connect());
    return store::find_behind_marks(session, group, marks);
  });
}

// Reads the topics that have room for a portion. A cursor behind what is in hand would not do: a
// record may become visible below it, and its successor above it. So what is in hand is left out.
store::OutboxStep Relay::next_step() {
  store::OutboxStep step{{}, acknowledged_, kPortionRows, kPortionBytes, setup_.lease};
  step.settled = settled_;
  for (auto& [name, topic] : topics_) {
    const auto& in_hand = topic.stream->in_hand();
    if (!topic.stream->takes_rows() || in_hand.size() > kMostRows - kPortionRows ||
        topic.stream->bytes_in_hand() > kMostBytes - kPortionBytes)
      continue;
    topic.low_water.mark();
    step.topics.emplace(name, mark_of(topic));
    for (const auto& [id, bytes] : in_hand) step.in_hand.push_back(id);
  }
  return step;
}

// A batch is sent only once PostgreSQL holds it. So its transaction in Kafka begins after this
// step.
void Relay::propose(store::OutboxStep& step) {
  for (auto& [name, topic] : topics_)
    if (topic.stream->wants_batch()) step.next.push_back(topic.stream->propose());
}

void Relay::opened(const store::OutboxStep& step, const store::OutboxRead& read) {
  if (!step.next.empty()) flow::crash_point("outbox_batch_opened");
  for (std::size_t i = 0; i < step.next.size(); ++i)
    topics_.at(step.next[i].topic).stream->opened(read.numbers[i]);
}

void Relay::send(store::OutboxRead read, const store::OutboxStep& step) {
  std::map<std::string, std::vector<store::OutboxRow>> rows;
  for (store::OutboxRow& row : read.rows) rows[row.topic].push_back(std::move(row));
  for (const auto& [name, mark] : step.topics) {
    std::vector<store::OutboxRow>& mine = rows[name];
    std::size_t bytes = 0;
    for (const store::OutboxRow& row : mine)
      bytes += row.key.value_or("").size() + row.payload.value_or("").size();
    const bool all = mine.size() < step.most_rows && bytes < step.most_bytes;
    const auto newest = read.newest.find(name);
    const std::int64_t upto = !all                          ? mine.back().id
                              : newest == read.newest.end() ? mark
                                                            : std::max(mark, newest->second);
    Topic& topic = topics_.at(name);
    topic.more = !all;
    topic.low_water.read(upto, read.writers);
    topic.stream->offer(std::move(mine));
  }
  measure();
}

// If so, the marks have passed records that may be sent now. What was read behind the marks must
// not be sent before them.
bool Relay::a_halt_ended(const store::OutboxRead& read) {
  const bool ended =
      std::ranges::any_of(halts_, [&](std::int64_t halt) { return !read.halts.contains(halt); });
  halts_ = read.halts;
  if (!ended) return false;
  for (auto& [name, topic] : topics_) topic.low_water.reset();
  peek_at_ = {};
  return true;
}

// Dead letters are no part of the records: they wait for a topic of theirs and hold nothing up.
void Relay::measure() {
  gauges_.measure(*session_, [this] {
    std::map<std::string, std::int64_t> marks;  // which have passed what is halted
    for (const auto& [name, topic] : topics_)
      if (setup_.topics.contains(name) || !letters_.is_for_letters(name))
        marks[name] = halts_.empty() ? mark_of(topic) : 0;
    return marks;
  });
}

void Relay::leave() {
  const auto until = Clock::now() + kOnceStopped;
  try {
    if (lease_ && !session_) session_.emplace(setup_.connect());
    const auto in_flight = [this] {
      return std::ranges::any_of(topics_,
                                 [](const auto& t) { return t.second.stream->is_in_flight(); });
    };
    while (lease_ && (in_flight() || has_answers()) && Clock::now() < until) {
      for (auto& [name, topic] : topics_) take_news(name, topic.stream->turn(false, kPoll));
      if (!has_answers()) continue;
      store::OutboxStep last{{}, acknowledged_, 1, 1, setup_.lease};
      last.settled = settled_;
      if (!store::step_outbox(*session_, *lease_, last)) return;
      acknowledged_.clear();
      settled_.clear();
    }
    if (lease_ && session_) store::release_outbox_lease(*session_, *lease_);
  } catch (const store::DatabaseError&) {
    // The lease ends by itself.
  }
}

}  // namespace hapax::outbox
