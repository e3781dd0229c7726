// Compares batches, and messages whose keys are taken with the COMMIT before them, with one by one.
// The outcomes are the same for all kinds of messages.
#include <latch>
#include <map>
#include <pqxx/pqxx>
#include <random>
#include <set>
#include <thread>

#include "flow/flow_case.hpp"

namespace hapax::flow {
namespace {

struct Planned {
  std::string key;      // idempotency key
  std::string payload;  // what the handler does, and a number
  int order_key = 0;
};

// Books, or fails in the way that the payload names.
class Doing final : public Handler {
 public:
  void handle(const Message& message, Context& context) override {
    const std::string payload(*message.payload());
    const auto does = [&](const char* what) { return payload.starts_with(what); };
    if (does("reject-late")) context.write("INSERT INTO effects (key, note) VALUES ('x', 'lost')");
    if (does("reject")) throw Reject("rejected");
    if (does("throw")) throw std::runtime_error("thrown");
    if (does("sql")) context.sql("SELECT 1 / 0");
    if (does("deferred"))
      context.write("INSERT INTO effects (key, note) VALUES ($1, $2)", "bad", payload);
    if (does("insert")) {
      context.insert("effects", {"key", "note"}, *message.header("id"), payload);
      context.insert("marks", {"effect"}, *message.header("id"));
    } else {
      context.write("INSERT INTO effects (key, note) VALUES ($1, $2)", *message.header("id"),
                    payload);
    }
    if (does("insert-bad")) context.insert("effects", {"note", "key"}, payload, "bad");
    if (does("insert-late")) context.sql("SELECT 1 / 0");
    if (does("result")) context.result({{"note", payload}});
  }
};

class BatchCase : public FlowCase {
 protected:
  BatchCase() {
    database.run(
        "ALTER TABLE effects ADD CHECK (key <> 'bad');"
        "CREATE TABLE marks (effect text); GRANT INSERT ON marks TO hapax_worker");
  }

  enum class Taken { together, behind_each_other };

  // Settles all messages as a lane does, up to `batch` at once, and returns what each became.
  std::vector<std::string> settle_all(const std::vector<Planned>& plan, std::size_t batch,
                                      const std::string& name, Taken how = Taken::together,
                                      Handler* other = nullptr) {
    Route own = route;
    own.key.scope = name;
    own.retry.first = own.retry.max = std::chrono::milliseconds(0);
    Processor processor = make_processor();
    Doing doing;
    Handler& handler = other == nullptr ? doing : *other;
    std::vector<std::string> outcomes(plan.size());
    std::vector<int> attempts(plan.size(), 0);
    std::map<int, std::vector<std::size_t>> strands;  // what is left, by order key
    for (std::size_t i = 0; i < plan.size(); ++i) strands[plan[i].order_key].push_back(i);
    for (int round = 0; !strands.empty() && round < 10000; ++round) {
      std::vector<std::size_t> taken;
      for (const auto& [order_key, left] : strands)
        for (const std::size_t i : left)
          if (taken.size() < batch) taken.push_back(i);
      const std::vector<Outcome> results =
          run(plan, taken, attempts, own, processor, handler, name, how);
      for (std::size_t n = 0; n < taken.size(); ++n) {
        if (results[n].result == Result::retry) attempts[taken[n]] = results[n].attempts;
        if (!is_settled(results[n].result)) continue;
        outcomes[taken[n]] = std::string(name_of(results[n].result)) + " " + results[n].reason;
        auto& left = strands[plan[taken[n]].order_key];
        EXPECT_EQ(left.front(), taken[n]) << "settled out of order";
        left.erase(left.begin());
        if (left.empty()) strands.erase(plan[taken[n]].order_key);
      }
    }
    EXPECT_TRUE(strands.empty());
    return outcomes;
  }

  // All effects, in the order of each order key (as order_by_key gives them).
  std::string booked() {
    return database.value(
               "SELECT coalesce(string_agg(key || '=' || note, ', ' ORDER BY "
               "substr(key, 2)::int % 6, id), '') FROM effects") +
           " | " +
           database.value(
               "SELECT coalesce(string_agg(effect, ', ' ORDER BY effect), '') FROM marks");
  }

  std::string state(const std::string& name) {
    return database.value(
               "SELECT coalesce(string_agg(key || ' ' || status || '@' || kafka_offset || ' ' || "
               "coalesce(result::text, '-'), ', ' ORDER BY key), '') FROM hapax.idempotency_keys "
               "WHERE scope = '" +
               name + "'") +
           " | " +
           database.value(
               "SELECT coalesce(string_agg(kafka_offset || ' ' || reason || ' ' || attempts, ', ' "
               "ORDER BY kafka_offset), '') FROM hapax.dead_letters WHERE group_id = '" +
               name + "'") +
           " | " +
           database.value(
               "SELECT coalesce(string_agg(kafka_offset || ' ' || count, ', ' ORDER BY "
               "kafka_offset), '') "
               "FROM hapax.attempts WHERE group_id = '" +
               name + "'");
  }

 private:
  std::vector<Outcome> run(const std::vector<Planned>& plan, const std::vector<std::size_t>& taken,
                           const std::vector<int>& attempts, const Route& own, Processor& processor,
                           Handler& handler, const std::string& group, Taken how) {
    std::vector<Message> messages;
    std::vector<Header> headers(taken.size());
    messages.reserve(taken.size());
    for (std::size_t n = 0; n < taken.size(); ++n) {
      const Planned& planned = plan[taken[n]];
      headers[n] = {"id", planned.key};
      Message::Parts parts;
      parts.coordinates = {own.topic, 0, static_cast<std::int64_t>(taken[n])};
      parts.payload = planned.payload;
      parts.headers = std::span(&headers[n], 1);
      messages.emplace_back(parts);
    }
    std::vector<Job> jobs;
    for (std::size_t n = 0; n < taken.size(); ++n)
      jobs.push_back({Task{.route = own,
                           .message = messages[n],
                           .group = group,
                           .attempts = attempts[taken[n]]},
                      &handler, static_cast<std::size_t>(plan[taken[n]].order_key)});
    if (jobs.size() == 1) return {processor.process(jobs.front().task, handler)};
    return how == Taken::together ? processor.process(jobs)
                                  : run_behind_each_other(jobs, processor);
  }

  // As a lane does that takes the next message when one has run.
  static std::vector<Outcome> run_behind_each_other(const std::vector<Job>& jobs,
                                                    Processor& processor) {
    std::vector<Outcome> outcomes(jobs.size(), Outcome::of(Result::waits));
    std::set<std::size_t> blocked;
    for (std::size_t n = 0; n < jobs.size(); ++n) {
      if (blocked.contains(jobs[n].order_key)) continue;
      outcomes[n] = processor.process(jobs[n].task, *jobs[n].handler, [&] {
        return n + 1 < jobs.size() ? &jobs[n + 1].task : nullptr;
      });
      if (is_settled(outcomes[n].result)) continue;
      blocked.insert(jobs[n].order_key);
      processor.abandon();
    }
    processor.abandon();
    return outcomes;
  }
};

std::vector<Planned> random_plan(std::mt19937& random) {
  static constexpr const char* kDoes[] = {
      "book",   "book",        "book",  "book", "result",   "insert",     "insert",     "insert",
      "reject", "reject-late", "throw", "sql",  "deferred", "insert-bad", "insert-late"};
  std::vector<Planned> plan(10 + random() % 30);
  for (Planned& planned : plan)
    planned = {"k" + std::to_string(random() % 25),
               std::string(kDoes[random() % std::size(kDoes)]) + " " + std::to_string(random() % 2),
               static_cast<int>(random() % 6)};
  return plan;
}

// One key's messages are kept in one order key here: across order keys their order is free, and
// with it which of them wins.
void order_by_key(std::vector<Planned>& plan) {
  for (Planned& planned : plan) planned.order_key = std::stoi(planned.key.substr(1)) % 6;
}

TEST_F(BatchCase, EndsAsOneByOneUnderRandomMessages) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    std::vector<Planned> plan = random_plan(random);
    order_by_key(plan);
    const std::string suffix = std::to_string(round);
    const std::size_t size = 2 + random() % 20;
    database.run("TRUNCATE effects, marks");
    const auto expected = settle_all(plan, 1, "one" + suffix);
    const std::string expected_booked = booked();
    const std::string expected_state = state("one" + suffix);
    database.run("TRUNCATE effects, marks");
    EXPECT_EQ(settle_all(plan, size, "many" + suffix), expected) << "batches of " << size;
    EXPECT_EQ(state("many" + suffix), expected_state);
    EXPECT_EQ(booked(), expected_booked);
    database.run("TRUNCATE effects, marks");
    const std::string chain = "chain" + suffix;
    EXPECT_EQ(settle_all(plan, size, chain, Taken::behind_each_other), expected);
    EXPECT_EQ(state(chain), expected_state);
    EXPECT_EQ(booked(), expected_booked);
  }
}

TEST_F(BatchCase, AFailureLeavesItsNeighboursInTheirOwnBatch) {
  std::vector<Planned> plan;
  for (int i = 0; i < 7; ++i) plan.push_back({"k" + std::to_string(i), "book", i});
  plan[3].payload = "reject";
  const auto outcomes = settle_all(plan, 7, "many");
  for (int i = 0; i < 7; ++i)
    EXPECT_EQ(outcomes[static_cast<std::size_t>(i)], i == 3 ? "failed rejected" : "completed ")
        << i;
  EXPECT_EQ(count("effects"), 6);
}

// PostgreSQL reports it at the seal, while no handler runs: a damaged page, or not enough memory
// for all messages.
TEST_F(BatchCase, WhatLooksLikeAnOutageOfOneMessageHoldsUpNoOther) {
  database.run(
      "CREATE FUNCTION public.meet_page() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN IF NEW.key = 'k3' THEN RAISE 'page' USING ERRCODE = 'XX001'; END IF; "
      "RETURN NEW; END $$;"
      "CREATE TRIGGER meets BEFORE INSERT ON effects FOR EACH ROW "
      "EXECUTE FUNCTION public.meet_page()");
  const std::vector<Header> headers = {{"id", "k0"}, {"id", "k1"}, {"id", "k2"}, {"id", "k3"},
                                       {"id", "k4"}, {"id", "k5"}, {"id", "k6"}};
  const std::vector<Message> messages = messages_of(headers);
  const std::string group = "group";
  Doing handler;
  const std::vector<Job> jobs = jobs_of(messages, group, handler);
  Processor processor = make_processor();
  const std::vector<Outcome> outcomes = processor.process(jobs);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(outcomes[i].result, Result::completed) << i;
  EXPECT_EQ(outcomes[3].result, Result::outage);
  EXPECT_TRUE(outcomes[3].lost_in_handler) << "it would not run alone the next time";
  for (const Outcome& outcome : processor.process(std::span(jobs).subspan(4)))
    EXPECT_EQ(outcome.result, Result::completed);
}

TEST_F(BatchCase, NothingBehindAFailureOfItsOrderKeyRuns) {
  const std::vector<Planned> plan = {{"a", "throw", 1}, {"b", "book", 1}, {"c", "book", 2}};
  Route own = route;
  Processor processor = make_processor();
  Doing handler;
  // As settle_all, but one take only.
  std::vector<Message> messages;
  std::vector<Header> headers = {{"id", "a"}, {"id", "b"}, {"id", "c"}};
  for (std::size_t i = 0; i < plan.size(); ++i) {
    Message::Parts parts;
    parts.coordinates = {own.topic, 0, static_cast<std::int64_t>(i)};
    parts.payload = plan[i].payload;
    parts.headers = std::span(&headers[i], 1);
    messages.emplace_back(parts);
  }
  std::vector<Job> jobs;
  const std::string group = "group";
  for (std::size_t i = 0; i < plan.size(); ++i)
    jobs.push_back({Task{.route = own, .message = messages[i], .group = group}, &handler,
                    static_cast<std::size_t>(plan[i].order_key)});
  const auto outcomes = processor.process(jobs);
  EXPECT_EQ(outcomes[0].result, Result::retry);
  EXPECT_EQ(outcomes[1].result, Result::waits);
  EXPECT_EQ(outcomes[2].result, Result::completed);
  EXPECT_EQ(effects(), "c=book");
}

TEST_F(BatchCase, RunsNothingOfAPartitionThatStartedBeforePostgresLostItsTail) {
  const std::vector<Header> headers = {{"id", "a"}, {"id", "b"}};
  const std::vector<Message> messages = messages_of(headers);
  const std::string group = "group";
  Doing handler;
  std::vector<Job> jobs;
  for (const Message& message : messages)
    jobs.push_back(
        {Task{.route = route, .message = message, .group = group, .incarnation = "another"},
         &handler, jobs.size()});
  Processor processor = make_processor();
  for (const Outcome& outcome : processor.process(jobs)) EXPECT_EQ(outcome.result, Result::busy);
  EXPECT_EQ(effects(), "");
}

// Which of them did it is told, and not guessed: a decision about one message fits no such halt.
TEST_F(BatchCase, HaltsAsAWholeIfAHandlerEndsTheTransaction) {
  class Ending final : public Handler {
    void handle(const Message& message, Context& context) override {
      if (message.offset() == 1) context.pqxx().exec("COMMIT");
    }
  };
  const std::vector<Header> headers = {{"id", "a"}, {"id", "b"}, {"id", "c"}};
  const std::vector<Message> messages = messages_of(headers);
  const std::string group = "group";
  Ending handler;
  const std::vector<Job> jobs = jobs_of(messages, group, handler);
  Processor processor = make_processor();
  const std::vector<Outcome> outcomes = processor.process(jobs);
  const Outcome& outcome = outcomes.front();
  EXPECT_EQ(outcome.result, Result::halt_route);
  for (std::size_t i = 1; i < outcomes.size(); ++i)
    EXPECT_GE(outcomes[i].wait, std::chrono::hours(1)) << "runs again before the halt is served";
  EXPECT_TRUE(outcome.of_batch);
  EXPECT_NE(outcome.detail.find("begins with partition 0 offset 0"), std::string::npos)
      << outcome.detail;
}

TEST_F(BatchCase, TwoWorkersBookOverlappingBatchesOnce) {
  std::vector<Planned> plan;
  for (int i = 0; i < 400; ++i) plan.push_back({"k" + std::to_string(i % 150), "book", i % 40});
  std::vector<std::string> first, second;
  std::thread other([&] { second = settle_all(plan, 30, "shared"); });
  first = settle_all(plan, 17, "shared");
  other.join();
  EXPECT_EQ(count("effects"), 150);
  EXPECT_EQ(database.count("SELECT count(DISTINCT key) FROM effects"), 150);
}

// Moves something from one account to the other; the first time, not before the other has begun.
class Crossing final : public Handler {
 public:
  Crossing(int from, int to, std::latch& both) : from_(from), to_(to), both_(both) {}
  void handle(const Message&, Context& context) override {
    context.sql("UPDATE accounts SET n = n - 1 WHERE id = $1", from_);
    if (!std::exchange(begun_, true)) both_.arrive_and_wait();
    context.sql("UPDATE accounts SET n = n + 1 WHERE id = $1", to_);
  }

 private:
  int from_, to_;
  std::latch& both_;
  bool begun_ = false;
};

TEST_F(BatchCase, TwoBatchesThatDeadlockTakeEffectOnceEach) {
  database.run(
      "CREATE TABLE accounts (id int PRIMARY KEY, n int);"
      "INSERT INTO accounts VALUES (1, 0), (2, 0);"
      "GRANT SELECT, UPDATE ON accounts TO hapax_worker");
  std::latch both(2);
  Crossing there(1, 2, both), back(2, 1, both);
  std::vector<Planned> plan, reverse;
  for (int i = 0; i < 9; ++i) plan.push_back({"there" + std::to_string(i), "", i});
  for (int i = 0; i < 5; ++i) reverse.push_back({"back" + std::to_string(i), "", i});
  std::vector<std::string> outcomes;
  std::thread other([&] { outcomes = settle_all(reverse, 5, "back", Taken::together, &back); });
  EXPECT_EQ(settle_all(plan, 9, "there", Taken::together, &there),
            std::vector<std::string>(9, "completed "));
  other.join();
  EXPECT_EQ(outcomes, std::vector<std::string>(5, "completed "));
  EXPECT_EQ(database.value("SELECT string_agg(n::text, ' ' ORDER BY id) FROM accounts"), "-4 4");
  database.wait_until(
      "SELECT deadlocks > 0 FROM pg_stat_database WHERE datname = current_database()", "t");
  EXPECT_EQ(count("hapax.attempts"), 0);
}

TEST_F(BatchCase, ManyRowsOfOneInsertReachPostgresAsOneStatement) {
  std::vector<Planned> plan;
  for (int i = 0; i < 50; ++i)
    plan.push_back({"k" + std::to_string(i), "book \"quoted\\\" {,}", i});
  database.run(
      "CREATE TABLE statements (n int);"
      "CREATE FUNCTION count_statements() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
      "AS $$ BEGIN INSERT INTO statements VALUES (1); RETURN NULL; END $$;"
      "CREATE TRIGGER counted AFTER INSERT ON effects FOR EACH STATEMENT "
      "EXECUTE FUNCTION count_statements()");
  settle_all(plan, 50, "many");
  EXPECT_EQ(count("effects"), 50);
  EXPECT_EQ(count("statements"), 1);
  EXPECT_EQ(database.count("SELECT count(*) FROM effects WHERE note = 'book \"quoted\\\" {,}'"),
            50);
}

}  // namespace
}  // namespace hapax::flow
