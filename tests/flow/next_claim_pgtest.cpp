// The next message's key is taken with the COMMIT of the one before. Tests what that saves, and
// that an error of one message does not count for the other.
#include <future>
#include <thread>

#include "flow/flow_case.hpp"
#include "store/transaction.hpp"

namespace hapax::flow {
namespace {

constexpr const char* kHeld =
    "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
    "partition, "
    "kafka_offset, expires_at) VALUES ('k2', 'booking', 'failed', 'other', 'payments', 1, 3, 1, "
    "now())";

class ClaimOfTheNext : public FlowCase {
 protected:
  struct Queued {
    Queued(const Route& route, Sent given)
        : sent(std::move(given)), headers{{"id", sent.key}}, message(parts(route)) {}
    Message::Parts parts(const Route& route) const {
      Message::Parts parts;
      parts.coordinates = {route.topic, 3, sent.offset};
      parts.payload = sent.payload;
      parts.headers = headers;
      return parts;
    }
    const Sent sent;  // the message looks into it
    std::vector<Header> headers;
    Message message;
  };

  class Doing final : public Handler {
   public:
    explicit Doing(Body body) : body_(std::move(body)) {}
    void handle(const Message& message, Context& context) override { body_(message, context); }

   private:
    Body body_;
  };

  // Runs both in a row, as a lane does. Runs the second even if the first did not settle.
  std::pair<Outcome, Outcome> both(const Body& first, const Body& second, Sent next = {"k2"},
                                   const std::string& key = "k1") {
    next.offset = std::max<std::int64_t>(next.offset, 1);
    const Queued one(route, {key}), two(route, next);
    const Task tasks[] = {task(one.message), task(two.message)};
    Doing does_first(first), does_second(second);
    std::pair<Outcome, Outcome> outcomes;
    outcomes.first = processor.process(tasks[0], does_first, [&] {
      ++asked;
      return &tasks[1];
    });
    if (!is_settled(outcomes.first.result)) processor.abandon();
    if (between) between();
    outcomes.second = processor.process(tasks[1], does_second);
    return outcomes;
  }

  Task task(const Message& message) const {
    return {.route = route, .message = message, .group = group};
  }

  // What the worker's session was told last.
  std::string last_text() {
    return database.value(
        "SELECT query FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = "
        "current_database()");
  }

  const std::string group = "group";
  Processor processor = make_processor();
  std::function<void()> between;
  int asked = 0;
};

TEST_F(ClaimOfTheNext, OneTextCommitsAMessageAndTakesTheKeyOfTheNext) {
  std::string text, seen;
  const auto [first, second] = both(book, [&](const Message& message, Context& context) {
    text = last_text();
    seen = effects();
    book(message, context);
  });
  EXPECT_EQ(first.result, Result::completed);
  EXPECT_EQ(second.result, Result::completed);
  EXPECT_EQ(seen, "k1=10") << "committed before the next one's handler runs";
  EXPECT_NE(text.find("COMMIT;BEGIN"), std::string::npos) << text;
  EXPECT_NE(text.find("'k2'"), std::string::npos) << text;
  EXPECT_EQ(effects(), "k1=10 k2=10");
  EXPECT_EQ(asked, 1);
}

TEST_F(ClaimOfTheNext, AnAbandonedKeyIsFree) {
  between = [&] {
    EXPECT_EQ(last_text().empty(), false);
    processor.abandon();
    EXPECT_EQ(last_text(), "");
    Processor other = make_processor();
    EXPECT_EQ(process_on(other, {.key = "k2", .offset = 1}, book).result, Result::completed);
  };
  const auto [first, second] = both(book, book);
  EXPECT_EQ(first.result, Result::completed);
  EXPECT_EQ(second.result, Result::duplicate);
  EXPECT_EQ(effects(), "k1=10 k2=10");
}

TEST_F(ClaimOfTheNext, ADuplicateADriftAndATombstoneAreSeenAsWithoutIt) {
  EXPECT_EQ(process_on(processor, {.key = "done", .offset = 9}, book).result, Result::completed);
  EXPECT_EQ(both(book, book, {"done"}, "a").second.result, Result::duplicate);
  EXPECT_EQ(both(book, book, {"done", "11"}, "b").second.reason, "payload_drift");
  EXPECT_EQ(both(book, book, {"", "11", 2}, "c").second.reason, "missing_key");
  EXPECT_EQ(both(book, book, {"t", std::nullopt, 3}, "d").second.reason, "tombstone");
  EXPECT_EQ(effects(), "done=10 a=10 b=10 c=10 d=10");
  EXPECT_EQ(asked, 4);
}

TEST_F(ClaimOfTheNext, AKeyThatIsHeldDoesNotUndoTheMessageBefore) {
  options.lock_timeout = std::chrono::milliseconds(100);
  processor = make_processor();
  store::Session holder(database.owner());
  std::optional<store::Transaction> holds(std::in_place, holder);
  holds->run(
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at) VALUES ('k2', 'booking', 'failed', 'other', "
      "'payments', "
      "1, 3, 1, now())");
  const auto [first, second] = both(book, book);
  EXPECT_EQ(first.result, Result::completed) << first.detail;
  EXPECT_EQ(second.result, Result::busy) << second.detail;
  EXPECT_EQ(second.sqlstate, "55P03");
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(count("hapax.attempts"), 0);
  holds.reset();
  EXPECT_EQ(process_on(processor, {.key = "k2", .offset = 1}, book).result, Result::completed);
}

// Only for a moment, however long the next one may wait for it.
TEST_F(ClaimOfTheNext, AKeyThatIsHeldDoesNotHoldUpTheMessageBefore) {
  options.lock_timeout = std::chrono::milliseconds(0);  // for ever: so long this test would last
  processor = make_processor();
  store::Session holder(database.owner());
  store::Transaction holds(holder);
  holds.run(kHeld);
  const Queued one(route, {"k1"}), two(route, {.key = "k2", .offset = 1});
  const Task tasks[] = {task(one.message), task(two.message)};
  Doing books(book);
  EXPECT_EQ(processor.process(tasks[0], books, [&] { return &tasks[1]; }).result,
            Result::completed);
}

// A table lock, as of a migration, comes between the COMMIT and the look whose failure it was.
TEST_F(ClaimOfTheNext, ACommittedMessageThatCannotBeLookedAtIsInDoubtAndNoFailedAttempt) {
  options.lock_timeout = std::chrono::milliseconds(200);
  processor = make_processor();
  std::promise<void> looked;
  std::thread migration;
  const Queued one(route, {"k1"}), two(route, {.key = "k2", .offset = 1});
  const Task tasks[] = {task(one.message), task(two.message)};
  Doing books([&](const Message& message, Context& context) {
    book(message, context);
    migration = std::thread([&] {
      store::Session session(database.owner());
      store::Transaction transaction(session);
      transaction.run("LOCK TABLE hapax.idempotency_keys IN ACCESS EXCLUSIVE MODE");
      looked.get_future().wait();
    });
    database.wait_until("SELECT count(*) FROM pg_locks WHERE NOT granted", "1");
  });
  const Outcome outcome = processor.process(tasks[0], books, [&] { return &tasks[1]; });
  looked.set_value();
  migration.join();
  EXPECT_EQ(outcome.result, Result::again) << outcome.reason << outcome.sqlstate;
  EXPECT_EQ(count("hapax.attempts"), 0);
  EXPECT_EQ(processor.process(tasks[0], books).result, Result::duplicate);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(ClaimOfTheNext, TheNextOnesHandlerWaitsForLocksAsLongAsAnyOnes) {
  const auto seen = [&](const Processor::Next& next) {
    std::string timeout;
    const Queued one(route, {"k1"}), two(route, {.key = "k2", .offset = 1});
    const Task tasks[] = {task(one.message), task(two.message)};
    Doing books(book), looks([&](const Message&, Context&context) {
      timeout = context.sql("SHOW lock_timeout")[0][0].text();
    });
    EXPECT_EQ(processor.process(tasks[0], books, [&] { return next ? &tasks[1] : nullptr; }).result,
              Result::completed);
    EXPECT_EQ(processor.process(tasks[1], looks).result, Result::completed);
    database.run("DELETE FROM hapax.idempotency_keys");
    return timeout;
  };
  const std::string alone = seen({});
  EXPECT_EQ(seen([] { return nullptr; }), alone);
  EXPECT_NE(alone, "50ms");
}

// Between the failure and the look at the key, the key is free for a moment. In one round of
// fifteen another worker takes it then, and under a sanitizer never.
TEST_F(ClaimOfTheNext, AFailureWhoseKeyAnotherWorkerCompletesMeanwhileIsNotTheNextOnes) {
  int completed_elsewhere = 0;
  for (int i = 0; i < 300 && completed_elsewhere == 0; ++i) {
    database.run("DELETE FROM hapax.idempotency_keys; DELETE FROM hapax.attempts");
    Processor owner = make_processor();
    std::thread other;
    const auto [first, second] = both(
        [&](const Message&, Context& context) {
          other = std::thread([&] {
            Doing nothing([](const Message&, Context&) {});
            const Queued same(route, {"k1"});
            owner.process(task(same.message), nothing);
          });
          database.wait_until("SELECT count(*) FROM pg_locks WHERE NOT granted", "1");
          context.write("INSERT INTO effects (key, note) SELECT 'lost', 1 / $1::int", 0);
        },
        book);
    other.join();
    completed_elsewhere += first.result == Result::completed;
    EXPECT_EQ(second.result, Result::completed) << second.reason << second.detail;
  }
}

TEST_F(ClaimOfTheNext, AFailedWriteIsItsOwnMessagesAndNotTheNextOnes) {
  const auto [first, second] = both(
      [](const Message& message, Context& context) {
        book(message, context);
        context.write("INSERT INTO effects (key, note) SELECT 'lost', 1 / $1::int", 0);
      },
      book);
  EXPECT_EQ(first.result, Result::retry) << first.reason;
  EXPECT_EQ(first.sqlstate, "22012");
  EXPECT_EQ(second.result, Result::completed);
  EXPECT_EQ(effects(), "k2=10");
}

TEST_F(ClaimOfTheNext, AHandlerThatEndsItsTransactionHaltsItsRouteAllTheSame) {
  const auto [first, second] = both(
      [](const Message& message, Context& context) {
        book(message, context);
        context.sql("ROLLBACK");
      },
      book);
  EXPECT_EQ(first.result, Result::halt_route) << first.reason;
  EXPECT_EQ(second.result, Result::completed);
  EXPECT_EQ(effects(), "k2=10");
}

TEST_F(ClaimOfTheNext, AConnectionThatIsLostLeavesOneInDoubtAndTheOtherUntouched) {
  const auto [first, second] = both(
      [](const Message& message, Context& context) {
        book(message, context);
        context.write("SELECT pg_terminate_backend(pg_backend_pid())");
      },
      book);
  EXPECT_FALSE(is_settled(first.result));
  EXPECT_EQ(second.result, Result::completed);
  EXPECT_EQ(effects(), "k2=10");
  EXPECT_EQ(process_on(processor, {.key = "k1"}, book).result, Result::completed);
}

TEST_F(ClaimOfTheNext, WhatAHandlerLeavesInTheSessionGoesBeforeTheNextBegins) {
  std::string text;
  const auto [first, second] = both(
      [](const Message& message, Context& context) {
        book(message, context);
        context.sql("SET search_path TO nowhere");
      },
      [&](const Message& message, Context& context) {
        text = last_text();
        book(message, context);
      });
  EXPECT_EQ(first.result, Result::completed);
  EXPECT_EQ(second.result, Result::completed) << second.detail;
  EXPECT_EQ(text.find("COMMIT;"), std::string::npos) << text;
  EXPECT_EQ(asked, 0);
}

TEST_F(ClaimOfTheNext, WhatMustBeAnnouncedOrWasDecidedIsNotTaken) {
  route.retry.max_attempts = 1;
  const Queued one(route, {"k1"}), two(route, {.key = "k2", .offset = 1});
  const std::string skip = "an operator";
  Task next = task(two.message);
  const auto taken_behind = [&](const Task& first) {
    Doing handler([](const Message&, Context&) {});
    database.run("DELETE FROM hapax.idempotency_keys");
    EXPECT_EQ(processor.process(first, handler, [&] { return &next; }).result, Result::completed);
    const bool taken = !last_text().empty();
    processor.abandon();
    return taken;
  };
  const Task first = task(one.message);
  EXPECT_TRUE(taken_behind(first));
  EXPECT_FALSE(
      taken_behind({.route = route, .message = one.message, .group = group, .cautious = true}));
  next.cautious = true;
  EXPECT_FALSE(taken_behind(first));
  next.cautious = false;
  next.skip = &skip;
  EXPECT_FALSE(taken_behind(first));
  next.skip = nullptr;
  next.attempts = 1;
  EXPECT_FALSE(taken_behind(first)) << "it is given up without running";
  next.attempts = 0;
  next.incarnation = "from before a crash";
  EXPECT_FALSE(taken_behind(first));
  next.incarnation = {};
  EXPECT_TRUE(taken_behind(first));
}

}  // namespace
}  // namespace hapax::flow
