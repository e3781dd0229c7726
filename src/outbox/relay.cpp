#include "outbox/relay.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "flow/crash_point.hpp"
#include "observe/log.hpp"
#include "store/message/publications.hpp"

namespace hapax::outbox {
namespace {

using namespace std::chrono_literals;
namespace log = observe::log;

constexpr auto kLook = 100ms;      // between two looks for records, unless nudged
constexpr auto kPoll = 5ms;        // for Kafka's answers
constexpr auto kTurn = 1ms;        // between two turns while records are on their way
constexpr auto kTryAgain = 500ms;  // after an error of PostgreSQL's
constexpr auto kReadAgain = 10s;   // the cluster's id, while it reaches another one or none is kept
constexpr auto kOnceStopped = 1s;  // for answers that are on their way
constexpr const char* kTookTooLong = "57014";  // by statement_timeout

}  // namespace

Relay::Relay(RelaySetup setup, observe::Metrics& metrics)
    : setup_(std::move(setup)),
      gauges_(metrics, setup_.group, setup_.letters),
      letters_(setup_.group, setup_.letters),
      lease_(setup_),
      topics_(setup_, cluster_, metrics),
      sweep_(setup_) {}

// One turn on the way of published records. A record is sent only after a synchronous COMMIT that
// came after it was read (P4), and removed only after Kafka has acknowledged it (P1).
void Relay::turn() {
  const bool leads = seek_lease();
  move_letters();
  if (leads) note_cluster();
  if (lease_.is_held()) send();
  if (!lease_.is_held()) return;
  const auto step = due_step();
  if (!step) return;
  auto read = store::step_outbox(lease_.session(), lease_.proof(), *step);
  if (!read) return forget();
  lease_.renewed(read->renewed_at);
  unremoved_.written();
  topics_.opened(*step, *read);
  if (!read->rows.empty()) {
    peek_at_ = {};  // there may be more
    flow::crash_point("outbox_fenced");
  }
  if (a_halt_ended(*read)) return;
  topics_.take(*step, std::move(*read));
  measure();
}

void Relay::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      turn();
    } catch (const std::exception& error) {  // PostgreSQL's, or a row that was edited by hand
      lease_.failed(error.what());
      // Another relay may send the same records meanwhile, and those that librdkafka still holds
      // would come after them. So they are taken back. If there is a halt, it is found again when
      // PostgreSQL is back. If the next connect takes longer than the lease, records come twice all
      // the same (docs/outbox.md).
      if (!lease_.is_fresh()) topics_.turn(false, 0ms, unremoved_);
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
  const bool moving = topics_.have_records() || !unremoved_.is_empty();
  sync::Lock lock(mutex_);
  woken_.wait_for(lock.waitable(), stop, moving ? kTurn : kLook,
                  [this]() HAPAX_REQUIRES(mutex_) { return nudged_; });
  if (std::exchange(nudged_, false)) peek_at_ = {};
}

bool Relay::seek_lease() {
  if (auto open_batches = lease_.seek()) {
    topics_.begin(std::move(*open_batches));
    cluster_.forget();
    letters_.look_again();
    sweep_.begin();
  }
  if (lease_.is_held() &&
      (!cluster_.is_read() || (!cluster_.is_kept() && Clock::now() > read_cluster_at_)))
    read_cluster();
  return lease_.is_held();
}

void Relay::forget() {
  topics_.forget();  // first, because librdkafka sends on until then
  unremoved_.forget();
  lease_.lost();
  gauges_.forget();
}

// Moves letters even while another relay sends, because that may be a gate's, which knows no
// letters.
void Relay::move_letters() {
  if (!lease_.knows_store()) return;
  store::Session& session = lease_.session();
  bool takes_too_long = false;
  const auto is_empty = [&](const std::string& to) {
    if (lease_.is_held() && halts_.empty()) return topics_.at(to).stream().is_empty();
    if (takes_too_long) return false;
    try {  // they may wait behind a halt, and then are in no stream
      return store::count_unpublished(session, setup_.group, {}, {to}, 1) == 0;
    } catch (const store::DatabaseError& error) {
      takes_too_long = error.sqlstate() == kTookTooLong;
      if (!takes_too_long) throw;
      return false;
    }
  };
  if (letters_.move(session, setup_.lease, lease_.store_id(), is_empty)) {
    peek_at_ = {};
    flow::crash_point("dead_letters_moved");
  }
  gauges_.measure_letters(session);
}

// Before the first record of the group is sent to a cluster.
void Relay::note_cluster() {
  if (cluster_.is_other() && Clock::now() > read_cluster_at_) read_cluster();
  const auto found = cluster_.to_note();
  if (!found) return;
  auto noted = store::note_outbox_cluster(lease_.session(), lease_.proof(), setup_.lease, *found);
  if (!noted) return forget();
  cluster_.noted(std::move(*noted));
}

// An operator may have decided that the records go to another cluster. Returns whether it is
// another one now.
bool Relay::read_cluster() {
  const std::string before = cluster_.id();
  cluster_.begin(store::read_outbox_cluster(lease_.session(), setup_.group));
  read_cluster_at_ = Clock::now() + kReadAgain;
  return cluster_.id() != before;
}

void Relay::send() {
  for (const store::OutboxHalt& wanted : topics_.turn(lease_.is_fresh(), kPoll, unremoved_))
    if (lease_.is_held()) halt(wanted);
}

void Relay::halt(const store::OutboxHalt& halt) {
  if (halt.reason == kOtherCluster && read_cluster()) return;
  if (!store::halt_outbox(lease_.session(), lease_.proof(), halt, setup_.name)) return forget();
  topics_.halted(halt);
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

// The next step with PostgreSQL, if there is anything to do, or the lease must be renewed.
std::optional<store::OutboxStep> Relay::due_step() {
  topics_.look(lease_.session());
  const auto found = sweep_.turn([this] { return topics_.marks(); });
  for (const std::string& name : found) topics_.at(name).read_all_again();
  if (!found.empty()) peek_at_ = {};
  store::OutboxStep step = topics_.next_step();
  bool is_due = lease_.must_be_renewed() || unremoved_.is_due(topics_.have_records()) ||
                !step.next.empty() || topics_.have_more(step);
  if (!is_due && !step.topics.empty() && Clock::now() >= peek_at_) {
    peek_at_ = Clock::now() + kLook;
    is_due = store::peek_outbox(lease_.session(), setup_.group, step.topics, step.in_hand);
  }
  if (!is_due) return std::nullopt;
  step.renewed_at = lease_.renewed_at();
  unremoved_.put_into(step);
  return step;
}

// Whether a halt has ended. If so, the marks have passed records that may be sent now, and records
// behind the marks must not be sent before those.
bool Relay::a_halt_ended(const store::OutboxRead& read) {
  const bool ended =
      std::ranges::any_of(halts_, [&](std::int64_t halt) { return !read.halts.contains(halt); });
  halts_ = read.halts;
  if (!ended) return false;
  cluster_.forget();
  topics_.read_all_again();
  peek_at_ = {};
  return true;
}

void Relay::measure() {
  gauges_.measure(lease_.session(), halts_.size(), [this] {
    auto marks = topics_.marks();
    std::erase_if(marks, [this](const auto& m) { return setup_.is_for_letters_alone(m.first); });
    if (!halts_.empty())  // the marks have passed what is halted
      for (auto& [name, mark] : marks) mark = 0;
    return marks;
  });
}

void Relay::leave() {
  const auto until = Clock::now() + kOnceStopped;
  try {
    if (lease_.is_held()) lease_.seek();
    while (lease_.is_held() && (topics_.are_in_flight() || !unremoved_.is_empty()) &&
           Clock::now() < until) {
      topics_.turn(false, kPoll, unremoved_);
      if (unremoved_.is_empty()) continue;
      store::OutboxStep last{{}, {}, 1, 1, setup_.lease, lease_.renewed_at()};
      unremoved_.put_into(last);
      if (!store::step_outbox(lease_.session(), lease_.proof(), last)) return;
      unremoved_.forget();
    }
    lease_.release();
  } catch (const store::DatabaseError&) {
    // If this fails, the lease runs out by itself.
  }
}

}  // namespace hapax::outbox
