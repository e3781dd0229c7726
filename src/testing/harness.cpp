#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <exception>
#include <thread>

#include "key/identity.hpp"
#include "payload/reader.hpp"
#include "store/transaction.hpp"
#include "store/worker/checkpoints.hpp"
#include "store/worker/outbox_headers.hpp"
#include "testing/crash.hpp"
#include "testing/implementation.hpp"

namespace hapax::testing {

using Implementation = Harness::Implementation;

namespace {

// Lanes that have one message at once. One that cannot go on waits until another one ends.
//
// Thread safety: safe.
class Together {
 public:
  explicit Together(std::size_t lanes) : running_(lanes) {}

  // Returns at once if all others wait, too.
  void wait() {
    std::unique_lock lock(mutex_);
    if (++waiting_ == running_) return wake();
    changed_.wait(lock, [this, turn = turn_] { return turn_ != turn; });
  }

  void end() {
    const std::lock_guard lock(mutex_);
    --running_;
    wake();
  }

 private:
  void wake() {
    waiting_ = 0;
    ++turn_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t running_, waiting_ = 0, turn_ = 0;
};

}  // namespace

Implementation::Implementation(HandlerFactory handler, const Options& options)
    : route_(read_route(handler, options)),
      options_(options),
      database_(options, route_),
      lane_(make_lane()) {}

std::unique_ptr<Lane> Implementation::make_lane(std::function<void()> wait_for_others,
                                                std::function<void()> before_delay) {
  return std::make_unique<Lane>(
      route_, database_.worker_url(),
      [this, before_delay = std::move(before_delay)](std::chrono::milliseconds time) {
        before_delay();
        const std::lock_guard lock(time_);
        store::pass_time(database_.owner(), time);
      },
      std::move(wait_for_others));
}

// As a worker that has just got the partition.
Delivery Implementation::delivery_of(const Record& record) {
  Delivery delivery{.record = record};
  if (record.offset) {
    delivery.offset = *record.offset;
    next_offset_ = std::max(next_offset_, delivery.offset + 1);
  } else {
    auto known = std::ranges::find(offsets_, record, &std::pair<Record, std::int64_t>::first);
    if (known == offsets_.end()) known = offsets_.insert(offsets_.end(), {record, next_offset_++});
    delivery.offset = known->second;
  }
  const store::TopicPartition partition{route_.route.topic, record.partition};
  const store::KnownMessages known = store::read_known_messages(
      database_.owner(), Lane::kGroup, {{partition, 1, delivery.offset}})[partition];
  if (const auto prior = known.attempts.find(delivery.offset); prior != known.attempts.end()) {
    delivery.attempts = prior->second.count;
    delivery.failing = std::chrono::milliseconds(prior->second.lasting_ms);
  }
  return delivery;
}

Record Implementation::sent_again(Record record) {
  record.offset = next_offset_++;
  return record;
}

std::optional<std::string> Implementation::key_at(const Record& record, std::int64_t offset) const {
  const Delivery delivery{.record = record, .offset = offset};
  const Views views(route_, delivery);
  const Message original(views.parts);
  const auto read = payload::read_message(route_.route.payload.get(), original);
  const key::Derived derived = key::identify(route_.route.key, read ? read->message : original, 0);
  const auto* const identity = std::get_if<key::Identity>(&derived);
  return identity == nullptr ? std::nullopt : std::optional(identity->key);
}

Outcome Implementation::run(const Record& record, const std::optional<Fault>& fault, bool once) {
  return lane_->run(delivery_of(record), fault, once);
}

std::optional<Outcome> Implementation::run(const Record& record, CallFault fault) {
  lane_->caller().arm(fault);
  try {
    Outcome outcome = run(record, std::nullopt, false);
    lane_->caller().arm({});
    return outcome;
  } catch (const Died&) {
    restart();
    store::pass_time(database_.owner(), Caller::kLease);
    return std::nullopt;
  }
}

std::vector<Outcome> Implementation::run_in_parallel(const Record& record, int workers) {
  const Delivery delivery = delivery_of(record);
  const auto count = static_cast<std::size_t>(std::max(workers, 1));
  std::vector<std::unique_ptr<Lane>> lanes;
  Together others(count);
  for (std::size_t i = 0; i < count; ++i) lanes.push_back(make_lane([&others] { others.wait(); }));
  std::vector<Outcome> outcomes(count);
  std::vector<std::exception_ptr> errors(count);
  std::barrier together(static_cast<std::ptrdiff_t>(count));
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      together.arrive_and_wait();
      try {
        outcomes[i] = lanes[i]->run(delivery, std::nullopt, false);
      } catch (...) {
        errors[i] = std::current_exception();
      }
      others.end();
    });
  threads.clear();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  for (const auto& lane : lanes) collect_leaks(*lane);
  return outcomes;
}

std::optional<std::string> Implementation::crash(CrashPoint point, const Record& record) {
  const Delivery delivery = delivery_of(record);
  return crash_in_child(point, [&] {
    Lane lane(route_, database_.worker_url(), [](std::chrono::milliseconds) {});
    return lane.run(delivery, std::nullopt, false);
  });
}

void Implementation::restart() {
  collect_leaks(*lane_);
  lane_.reset();
  lane_ = make_lane();
}

void Implementation::save() {
  restart();
  store::save_tables(database_.owner());
}

void Implementation::restore() {
  restart();
  store::restore_tables(database_.owner());
}

std::vector<Published> Implementation::published() {
  std::vector<Published> records;
  for (store::PublishedRow& row : store::read_published(database_.owner()))
    records.push_back({std::move(row.topic), std::move(row.key), std::move(row.payload),
                       store::outbox_headers_of(row.headers), std::move(row.idempotency_key)});
  return records;
}

int Implementation::other_sessions() {
  return store::count_other_sessions(database_.owner(), route_.connect.application_name);
}

void Implementation::collect_leaks(const Lane& lane) {
  for (const std::string& leak : lane.leaks())
    if (!std::ranges::count(leaks_, leak)) leaks_.push_back(leak);
}

void Implementation::forget_leaks() {
  restart();
  leaks_.clear();
}

const std::vector<std::string>& Implementation::leaks() {
  collect_leaks(*lane_);
  return leaks_;
}

Harness::Harness(HandlerFactory handler, Options options)
    : implementation_(std::make_unique<Implementation>(std::move(handler), options)) {}

Harness::~Harness() = default;

Outcome Harness::deliver(const Record& record) {
  return implementation_->run(record, std::nullopt, false);
}

Outcome Harness::deliver(const Record& record, const Fault& fault) {
  return implementation_->run(record, fault, false);
}

Outcome Harness::attempt(const Record& record) {
  return implementation_->run(record, std::nullopt, true);
}

Outcome Harness::attempt(const Record& record, const Fault& fault) {
  return implementation_->run(record, fault, true);
}

Outcome Harness::resend(const Record& record) {
  return deliver(implementation_->sent_again(record));
}

std::vector<Outcome> Harness::deliver_in_parallel(const Record& record, int workers) {
  return implementation_->run_in_parallel(record, workers);
}

void Harness::crash_at(CrashPoint point, const Record& record) {
  if (implementation_->calls())
    throw std::logic_error(
        "the handler calls to the outside, and the double of the other side would not see the call "
        "of a process that dies. Use expect_no_blind_repeat or examine_calls");
  if (const auto ended = implementation_->crash(point, record))
    throw std::runtime_error("it did not come to the point \"" + std::string(name_of(point)) +
                             "\": " + *ended);
}

std::vector<Outcome> Harness::replay(const std::vector<Record>& records) {
  std::vector<Outcome> outcomes;
  for (const Record& record : records) outcomes.push_back(deliver(record));
  return outcomes;
}

std::vector<std::string> Harness::compare(Harness& other, const std::vector<Record>& records) {
  return compare_handlers(*implementation_, *other.implementation_, records);
}

std::vector<Published> Harness::published() { return implementation_->published(); }

void Harness::restart() { implementation_->restart(); }

namespace {

void refuse_kind(bool calls, bool wanted) {
  if (calls == wanted) return;
  throw std::logic_error(
      calls ? "the handler calls to the outside; use expect_no_blind_repeat or examine_calls"
            : "the handler does not call to the outside (it is no hapax::OutsideHandler); use "
              "expect_exactly_once or examine");
}

}  // namespace

Report Harness::examine(const Record& record) {
  refuse_kind(implementation_->calls(), false);
  return examine_record(*implementation_, record, Wanted::any);
}

Report Harness::examine_calls(const Record& record, const OtherSide& other_side) {
  refuse_kind(implementation_->calls(), true);
  return testing::examine_calls(*implementation_, record, other_side, Wanted::any);
}

void Harness::expect_no_blind_repeat(const Record& record, const OtherSide& other_side) {
  refuse_kind(implementation_->calls(), true);
  Report report = testing::examine_calls(*implementation_, record, other_side, Wanted::effect);
  if (!report.passed()) throw NotExactlyOnce(std::move(report));
}

void Harness::expect_exactly_once(const Record& record) {
  refuse_kind(implementation_->calls(), false);
  Report report = examine_record(*implementation_, record, Wanted::effect);
  if (!report.passed()) throw NotExactlyOnce(std::move(report));
}

Rows Harness::run(std::string_view text, std::vector<Parameter> values) {
  store::Transaction transaction(implementation_->database().owner());
  Rows rows = transaction.query(text, values);
  transaction.commit();
  return rows;
}

void Harness::expect_no_lost_update(const Record& first, const Record& second) {
  refuse_kind(implementation_->calls(), false);
  Report report = examine_pair(*implementation_, first, second);
  if (!report.passed()) throw NotExactlyOnce(std::move(report));
}

const std::vector<std::string>& Harness::session_leaks() const { return implementation_->leaks(); }

std::string Harness::url() const { return implementation_->database().worker_url(); }

}  // namespace hapax::testing
