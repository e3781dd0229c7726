// What retention may forget: no key that a message still waits with. A message waits if its
// partition's checkpoint has not passed it; a restart runs all from there again.
//
// Random histories of two groups in one scope are held against a model. They have messages sent
// again, pinned checkpoints, restarts, rewinds and expiry. The model: a message that was sent
// within `retention` of an effect of its operation takes no effect.
#include "store/worker/retention.hpp"

#include <map>
#include <random>
#include <set>

#include "flow/flow_case.hpp"
#include "store/operator/operator.hpp"
#include "store/worker/checkpoints.hpp"

namespace hapax::flow {
namespace {

constexpr int kRetention = 100;  // seconds
constexpr int kPartitions = 2;

// One group's way through one partition, as its worker has it.
struct Reader {
  std::string group;
  int partition = 0;
  int since = 0;  // when the group started
  std::int64_t epoch = 0, checkpoint = 0, guard = 0;
  std::set<std::int64_t> settled;
  std::optional<store::LogEnd> asked;
};

struct Written {
  std::string key;
  int at = 0;
};

class RetentionCase : public FlowCase {
 protected:
  RetentionCase() : session_(options), lane_(make_processor()) {
    route.retention = std::chrono::seconds(kRetention);
    incarnation_ = store::read_store(session_).incarnation;
  }

  Reader& join(const std::string& group, int partition) {
    readers_.push_back({group, partition, now_});
    start(readers_.back());
    return readers_.back();
  }

  store::Taking taking(const Reader& reader) const {
    return {reader.group, {route.topic, reader.partition}, "w", "spec", route.key.scope, 0};
  }

  // A new owner: all that was settled beyond the checkpoint comes again.
  void start(Reader& reader) {
    store::Taking taking = this->taking(reader);
    const auto row = store::read_checkpoint(session_, reader.group, taking.partition);
    taking.read_epoch = row ? row->epoch : 0;
    reader.epoch = store::take_partition(session_, taking)->epoch;
    reader.checkpoint = row && row->next_offset ? *row->next_offset : 0;
    reader.guard =
        *store::agree_start(session_, taking, {reader.epoch, reader.checkpoint, "cluster", ""});
    reader.settled.clear();
    reader.asked.reset();
  }

  void send(int partition, const std::string& key) { log_[partition].push_back({key, now_}); }

  Outcome run(Reader& reader, std::int64_t offset, const Body& body = book) {
    const Written& written = log_[reader.partition].at(static_cast<std::size_t>(offset));
    const std::vector<Header> headers = {{"id", written.key}};
    Message::Parts parts;
    parts.coordinates = {route.topic, reader.partition, offset};
    parts.payload = "10";
    parts.headers = headers;
    const Message message(parts);
    FlowCase::CountingHandler handler(body, runs);
    const Outcome outcome = lane_.process(
        Task{
            .route = route, .message = message, .group = reader.group, .guard_below = reader.guard},
        handler);
    reader.settled.insert(offset);
    return outcome;
  }

  void write_checkpoint(Reader& reader) {
    std::int64_t next = reader.checkpoint;
    while (reader.settled.contains(next)) ++next;
    if (next == reader.checkpoint) return;
    ASSERT_FALSE(store::write_checkpoints(session_, reader.group,
                                          {{{route.topic, reader.partition},
                                            incarnation_,
                                            reader.epoch,
                                            reader.checkpoint,
                                            next}})
                     .empty());
    reader.checkpoint = next;
  }

  // As worker/retention.cpp does.
  void expire() {
    const auto own = std::chrono::system_clock::now();
    const std::string now = store::read_clock(session_, own, std::chrono::hours(1)).now;
    for (Reader& reader : readers_) {
      if (!reader.asked)
        reader.asked = {{route.topic, reader.partition},
                        reader.epoch,
                        static_cast<std::int64_t>(log_[reader.partition].size()),
                        now};
      if (!store::note_passed(session_, reader.group, {*reader.asked}).empty())
        reader.asked.reset();
    }
    for (const store::HeldScope& scope : store::read_held_scopes(session_, now))
      if (scope.scope == route.key.scope) store::expire_keys(session_, 1000, "-infinity", {scope});
  }

  // Time passes for PostgreSQL, too: each time that it keeps is so much older.
  void pass(int seconds) {
    now_ += seconds;
    const std::string shift = " - interval '" + std::to_string(seconds) + "s'";
    database.run("UPDATE hapax.idempotency_keys SET expires_at = expires_at" + shift +
                 "; UPDATE hapax.passed SET until = until" + shift);
    for (Reader& reader : readers_)
      if (reader.asked)
        reader.asked->at = database.value("SELECT '" + reader.asked->at + "'::timestamptz" + shift);
  }

  int now_ = 0;
  std::vector<Written> log_[kPartitions];
  std::vector<Reader> readers_;
  store::Session session_;
  Processor lane_;
  std::string incarnation_;
};

using Retention = RetentionCase;

TEST_F(Retention, KeepsTheKeyOfADuplicateThatWasSettledAheadOfAPinnedCheckpoint) {
  readers_.reserve(2);
  Reader& reader = join("group", 0);
  send(0, "first");
  send(0, "stuck");  // waits for a retry, and pins the checkpoint
  ASSERT_EQ(run(reader, 0).result, Result::completed);
  send(0, "first");  // again, within the retention
  ASSERT_EQ(run(reader, 2).result, Result::duplicate);
  write_checkpoint(reader);
  ASSERT_EQ(reader.checkpoint, 1);
  pass(kRetention + 10);
  expire();
  start(reader);
  EXPECT_EQ(run(reader, 2).result, Result::duplicate);
  EXPECT_EQ(effects(), "first=10");
}

TEST_F(Retention, KeepsTheKeyThatAnotherMessageTookOverFromARejectedOne) {
  readers_.reserve(2);
  Reader& reader = join("group", 0);
  send(0, "stuck");
  send(0, "k");
  send(1, "k");
  Reader& other = join("group", 1);
  ASSERT_EQ(run(reader, 1, [](const Message&, Context&) { throw Reject("no"); }).result,
            Result::failed);
  ASSERT_EQ(run(other, 0).result, Result::completed);
  write_checkpoint(other);
  pass(kRetention + 10);
  expire();
  start(reader);
  EXPECT_NE(run(reader, 1).result, Result::completed);
  EXPECT_EQ(effects(), "k=10");
}

TEST_F(Retention, KeepsTheKeyOfWhatLagsBehindInAnotherPartitionOrGroup) {
  readers_.reserve(3);
  Reader& reader = join("group", 0);
  Reader& late = join("group", 1);
  Reader& other = join("other", 0);
  send(0, "k");
  ASSERT_EQ(run(reader, 0).result, Result::completed);
  write_checkpoint(reader);
  pass(kRetention - 10);
  send(1, "k");  // within the retention, and processed late
  pass(20);
  expire();
  EXPECT_EQ(run(late, 0).result, Result::duplicate);
  EXPECT_EQ(run(other, 0).result, Result::duplicate);
  write_checkpoint(late);
  expire();
  EXPECT_EQ(key_row("k"), "completed@0") << "the other group has not passed its message";
  write_checkpoint(other);
  expire();
  EXPECT_EQ(key_row("k"), "");
}

TEST_F(Retention, HoldsNothingForAPartitionWhoseStartWasNeverAgreed) {
  readers_.reserve(2);
  Reader& reader = join("group", 0);
  send(0, "k");
  ASSERT_EQ(run(reader, 0).result, Result::completed);
  write_checkpoint(reader);
  ASSERT_TRUE(store::take_partition(session_,
                                    {"halted", {route.topic, 0}, "w", "spec", route.key.scope, 0}));
  pass(kRetention + 10);
  expire();
  EXPECT_EQ(key_row("k"), "");
}

// A gate's scope, for example: no partition of it was ever agreed, so nothing holds its keys.
TEST_F(Retention, RemovesKeysOfAScopeWhoseOnlyPartitionWasNeverAgreed) {
  ASSERT_TRUE(store::take_partition(session_, {"halted", {"t", 0}, "w", "spec", "gate", 0}));
  database.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at) VALUES ('k', 'gate', 'completed', 'gate', 't', 1, 0, "
      "0, "
      "now() - interval '1s')");
  EXPECT_EQ(store::expire_keys(session_, 10, "-infinity", {}, "infinity").keys, 1U);
}

// The clock that expires keys is never later than the caller's.
TEST_F(Retention, ExpiresNothingByADatabaseClockThatIsDaysAhead) {
  const auto days_ago = std::chrono::system_clock::now() - std::chrono::hours(72);
  const store::ClockReading clock = store::read_clock(session_, days_ago, std::chrono::minutes(5));
  EXPECT_TRUE(clock.ahead);
  EXPECT_EQ(database.value("SELECT '" + clock.now + "'::timestamptz <= to_timestamp(" +
                           std::to_string(std::chrono::system_clock::to_time_t(days_ago)) + ")"),
            "t")
      << "the tolerance is none for the keys";
  readers_.reserve(1);
  Reader& reader = join("group", 0);
  send(0, "k");
  ASSERT_EQ(run(reader, 0).result, Result::completed);
  write_checkpoint(reader);
  pass(kRetention + 10);
  ASSERT_FALSE(
      store::note_passed(session_, "group", {{{route.topic, 0}, reader.epoch, 1, clock.now}})
          .empty());
  for (const store::HeldScope& scope : store::read_held_scopes(session_, clock.now))
    EXPECT_EQ(store::expire_keys(session_, 10, "-infinity", {scope}).keys, 0U);
  expire();
  EXPECT_EQ(key_row("k"), "");
}

class RandomRetention : public RetentionCase, public testing::WithParamInterface<int> {
 protected:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  // An effect, against all before it. What was forgotten before the group began it may run again.
  void check(const Reader& reader, const Written& written) {
    constexpr int kExact = 5;  // seconds that the test itself may take
    for (const int effect : effects_[written.key])
      EXPECT_FALSE(written.at < effect + kRetention - kExact &&
                   reader.since < effect + kRetention - kExact)
          << "an operation took effect at " << effect << " and at " << now_
          << " by a message sent at " << written.at << ": " << written.key << " in "
          << reader.group;
    effects_[written.key].push_back(now_);
  }

  void run_one(Reader& reader) {
    const auto end = static_cast<std::int64_t>(log_[reader.partition].size());
    if (&reader == &readers_[idle_ % readers_.size()]) return;
    const std::int64_t offset = reader.checkpoint + below(6);
    if (offset >= end || reader.settled.contains(offset)) return;
    if (stuck_ == offset && below(4) != 0) return;
    const bool rejects = below(5) == 0;
    const Outcome outcome = run(reader, offset, [&](const Message& message, Context& context) {
      if (rejects) throw Reject("no");
      book(message, context);
    });
    if (outcome.result == Result::completed)
      check(reader, log_[reader.partition].at(static_cast<std::size_t>(offset)));
  }

  void rewind(Reader& reader) {
    if (reader.checkpoint == 0) return;
    store::Session owner(database.owner());
    store::move_position(owner, {reader.group,
                                 {route.topic, reader.partition},
                                 reader.checkpoint - 1 - below(2) % reader.checkpoint,
                                 store::Jump::rewind,
                                 "me",
                                 "why"});
    start(reader);
  }

  void step() {
    Reader& reader =
        readers_.at(static_cast<std::size_t>(below(static_cast<int>(readers_.size()))));
    switch (below(20)) {
      case 0:
      case 1:
      case 2:
      case 3: send(below(kPartitions), "k" + std::to_string(below(5))); break;
      case 4: pass(10 + below(kRetention / 2)); break;
      case 5:
      case 6: expire(); break;
      case 7: start(reader); break;
      case 8:
        if (below(3) == 0) rewind(reader);
        break;
      case 9:
        stuck_ = reader.checkpoint;
        if (below(3) == 0) idle_ = random_();
        break;
      case 10:
      case 11:
      case 12: write_checkpoint(reader); break;
      default: run_one(reader);
    }
  }

  std::mt19937 random_{static_cast<unsigned>(GetParam())};
  std::int64_t stuck_ = -1;  // an offset that waits for a retry
  std::size_t idle_ = 0;     // one that lags
  std::map<std::string, std::vector<int>> effects_;
};

TEST_P(RandomRetention, ForgetsNothingThatAWaitingMessageHas) {
  readers_.reserve(2 * kPartitions);
  for (int partition = 0; partition < kPartitions; ++partition) join("group", partition);
  const int second = below(200);
  for (int n = 0; n < 400 && !HasFailure(); ++n) {
    if (n == second)  // a second group of the scope, or the first one under another name
      for (int partition = 0; partition < kPartitions; ++partition) join("other", partition);
    step();
  }
  EXPECT_FALSE(effects_.empty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRetention, testing::Range(1, 13));

}  // namespace
}  // namespace hapax::flow
