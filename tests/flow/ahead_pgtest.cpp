// The next message's key is taken with the COMMIT of the one before: what that saves, and that
// neither of the two pays for the other.
#include "flow/flow_case.hpp"
#include "store/transaction.hpp"

namespace hapax::flow {
namespace {

class Ahead : public FlowCase {
 protected:
  struct Queued {
    Queued(const Route& route, const Sent& sent)
        : headers{{"id", sent.key}}, message(parts(route, sent)) {}
    Message::Parts parts(const Route& route, const Sent& sent) const {
      Message::Parts parts;
      parts.coordinates = {route.topic, 3, sent.offset};
      parts.payload = sent.payload;
      parts.headers = headers;
      return parts;
    }
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

  // Both in a row, as a lane does; the second even where the first did not settle.
  std::pair<Outcome, Outcome> both(const Body& first, const Body& second, Sent next = {"k2"}) {
    next.offset = 1;
    const Queued one(route, {"k1"}), two(route, next);
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

TEST_F(Ahead, OneTextCommitsAMessageAndTakesTheKeyOfTheNext) {
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

TEST_F(Ahead, AnAbandonedKeyIsFree) {
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

TEST_F(Ahead, ADuplicateADriftAndATombstoneAreSeenAsWithoutIt) {
  EXPECT_EQ(both(book, book, {"k1"}).second.result, Result::duplicate);
  EXPECT_EQ(both(book, book, {"k1", "11"}).second.reason, "payload_drift");
  EXPECT_EQ(both(book, book, {"", "11"}).second.reason, "missing_key");
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(Ahead, AKeyThatIsHeldDoesNotUndoTheMessageBefore) {
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

TEST_F(Ahead, AFailedWriteIsItsOwnMessagesAndNotTheNextOnes) {
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

TEST_F(Ahead, AHandlerThatEndsItsTransactionHaltsItsRouteAllTheSame) {
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

TEST_F(Ahead, AConnectionThatIsLostLeavesOneInDoubtAndTheOtherUntouched) {
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

TEST_F(Ahead, WhatAHandlerLeavesInTheSessionGoesBeforeTheNextBegins) {
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

TEST_F(Ahead, WhatMustBeAnnouncedOrWasDecidedIsNotTaken) {
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
