#include "worker/dead_letter_publisher.hpp"

#include <random>
#include <set>

#include "flow/crash_point.hpp"
#include "observe/log.hpp"
#include "store/worker/checkpoints.hpp"
#include "store/worker/retention.hpp"
#include "worker/dead_letter_record.hpp"
#include "worker/stoppable_wait.hpp"

namespace hapax::worker {
namespace {

using namespace std::chrono_literals;
using kafka::Delivery;
using std::chrono::steady_clock;

constexpr auto kAskAgain = 1s;
constexpr auto kLease = 20s;
constexpr auto kRenewLease = 5s;       // and so often the others ask for it
constexpr auto kDeliveryTimeout = 5s;  // of one letter: well below kLease

std::string with_nonce(const std::string& worker_name) {
  std::random_device random;
  return worker_name + " " + std::to_string(random()) + std::to_string(random());
}

}  // namespace

DeadLetterPublisher::DeadLetterPublisher(DeadLetterPublisherSetup setup, PostgresState& postgres,
                                         observe::Metrics& metrics)
    : setup_(std::move(setup)),
      holder_(with_nonce(setup_.worker_name)),
      postgres_(postgres),
      metrics_(metrics) {
  for (const auto& [consumed, dead] : setup_.topics) consumed_.push_back(consumed);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void DeadLetterPublisher::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      if (!postgres_.is_down()) turn(stop);
    } catch (const store::DatabaseError& error) {
      session_.reset();
      leading_ = false;
      // The lanes log an outage. This thread logs only what PostgreSQL refuses.
      if (!error.sqlstate().empty() && !error.sqlstate().starts_with("57P"))
        delayed("", "PostgreSQL refuses (does the worker's role have its rights? sql/roles.sql): " +
                        std::string(error.what()));
    }
    wait_unless_stopped(stop, kAskAgain);
  }
}

// All there is, but for what a dead letter topic refuses: its letters stay in order, and hold up no
// other topic's.
void DeadLetterPublisher::turn(const std::stop_token& stop) {
  if (!ready()) return;
  mark();
  if (!leads()) return metrics_.dead_letters_unpublished(0);
  std::set<std::string> refusing;  // dead letter topics
  std::vector<std::string> topics = consumed_;
  for (;;) {
    metrics_.dead_letters_unpublished(store::count_unpublished(*session_, setup_.group, consumed_));
    const auto letters = store::read_unpublished(*session_, setup_.group, topics);
    if (letters.empty()) return;
    for (const store::UnpublishedLetter& letter : letters) {
      const std::string& topic = setup_.topics.at(letter.topic);
      if (refusing.contains(topic)) continue;
      if (stop.stop_requested() || !leads()) return mark();
      if (publish(letter, stop)) {
        delivered_.push_back(letter.id);
        flow::crash_point("dead_letter_published");
      } else {
        refusing.insert(topic);
      }
    }
    mark();
    std::erase_if(topics, [&](const std::string& consumed) {
      return refusing.contains(setup_.topics.at(consumed));
    });
  }
}

// False on a schema that is too old: `hapax migrate up` may come later. And on a copy.
bool DeadLetterPublisher::ready() {
  if (delivered_.empty() && steady_clock::now() >= renew_session_) session_.reset();
  if (session_) return true;
  renew_session_ = steady_clock::now() + setup_.session_lasts;
  ask_lease_ = {};  // another server may give it to another worker
  store::Session session = setup_.connect();
  if (!store::has_publications(session)) return false;
  const store::StoreIdentity store = store::read_store(session);
  if (store.copied) return false;
  store_id_ = store.id;
  session_.emplace(std::move(session));
  return true;
}

bool DeadLetterPublisher::leads() {
  if (steady_clock::now() < ask_lease_) return leading_;
  // Reckoned from before the question, so that it never outlasts PostgreSQL's reckoning.
  const auto asked = steady_clock::now();
  leading_ = store::take_lease(*session_, "dead letters of " + setup_.group, holder_, kLease);
  ask_lease_ = asked + kRenewLease;
  return leading_;
}

// Before anything else is published: what is not marked would be published once more.
void DeadLetterPublisher::mark() {
  if (delivered_.empty()) return;
  store::mark_published(*session_, delivered_);
  delivered_.clear();
}

bool DeadLetterPublisher::publish(const store::UnpublishedLetter& letter,
                                  const std::stop_token& stop) {
  const std::string& topic = setup_.topics.at(letter.topic);
  Delivery delivery;
  try {
    if (!producer_)
      producer_ = std::make_unique<kafka::OrderedProducer>(setup_.properties(), kDeliveryTimeout);
    for (const LeftOut left_out : {LeftOut::nothing, LeftOut::payload, LeftOut::all_but_error}) {
      delivery = producer_->deliver(
          dead_letter_record(letter, topic, setup_.group, store_id_, left_out), stop);
      if (delivery.result != Delivery::Result::too_large) break;
      observe::log::warning(
          "dead_letter_too_large",
          {{"dead_letter", letter.id},
           {"dead_letter_topic", topic},
           {"payload_bytes", letter.payload.value_or("").size()}},
          "the dead letter topic takes no record of this size (max.message.bytes): "
          "publishing it without its payload; `hapax dead show` has all of it");
    }
  } catch (const std::runtime_error& error) {
    delivery.error = error.what();
  }
  if (delivery.result == Delivery::Result::delivered) {
    if (said_.erase("") + said_.erase(topic) > 0)
      observe::log::info("dead_letters_go_on", {{"dead_letter_topic", topic}},
                         "dead letters are published again");
    return true;
  }
  producer_.reset();
  if (!stop.stop_requested()) delayed(topic, delivery.error, delivery.connection);
  return false;
}

// One line while the reason stays the same.
void DeadLetterPublisher::delayed(const std::string& topic, const std::string& why,
                                  const std::string& more) {
  if (said_[topic] == why) return;
  said_[topic] = why;
  observe::log::warning(
      "dead_letters_delayed", {{"dead_letter_topic", topic}, {"error", why}, {"connection", more}},
      "dead letters are not published while this lasts (`hapax check` looks why); they are "
      "kept in PostgreSQL, and it goes on by itself");
}

}  // namespace hapax::worker
