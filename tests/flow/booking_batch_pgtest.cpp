// Answers of the other side that are booked in one transaction.
#include <gmock/gmock.h>

#include "flow/booking.hpp"
#include "flow/flow_case.hpp"

namespace hapax::flow {
namespace {

// Four operations, each with an answer of its own under its own token.
class BookingBatch : public FlowCase {
 protected:
  BookingBatch() {
    route.outside.emplace();
    route.batch = 10;
    database.run(
        "INSERT INTO hapax.idempotency_keys (key, scope, status, fingerprint, fingerprint_rule, "
        "group_id, topic, generation, partition, kafka_offset, expires_at, holder, token, calls, "
        "called_at, alone, crashes, answer) SELECT 'k' || n, 'booking', 'answered', "
        "sha256('book'), 'payload', 'group', 'payments', 1, 0, n, 'infinity', 1, 100 + n, 1, "
        "now(), "
        "false, 0, to_json('c' || n) FROM generate_series(0, 3) n");
  }

  // Books the answer, unless a key is to fail.
  class Charges final : public Booker {
   public:
    void book(const Message& message, const std::string& answer, Context& context) override {
      const std::string key(*message.header("id"));
      ++runs[key];
      context.write("INSERT INTO effects (key, note) VALUES ($1, $2)", key, answer);
      if (key == fails) throw std::runtime_error("told to fail");
    }
    std::string fails;
    std::map<std::string, int> runs;
  };

  // As a lane does with a batch. What became of each, in order.
  std::string book_all(std::int64_t epoch = 0) {
    Processor processor = make_processor();
    std::vector<Job> jobs = jobs_of(messages_, group_, charges);
    for (std::size_t n = 0; n < jobs.size(); ++n) {
      jobs[n].task.answered = answers[n] ? &*answers[n] : nullptr;
      jobs[n].task.epoch = epoch;
      jobs[n].task.has_letter = n == has_letter;
    }
    std::string became;
    for (const Outcome& outcome : processor.process(jobs)) {
      if (!became.empty()) became += ", ";
      became += name_of(outcome.result);
      if (!outcome.reason.empty()) became += " " + outcome.reason;
    }
    return became;
  }

  std::string statuses() {
    return database.value(
        "SELECT string_agg(status, ' ' ORDER BY key) FROM hapax.idempotency_keys");
  }
  // How many transactions booked.
  std::string transactions() {
    return database.value("SELECT count(DISTINCT xmin::text) FROM effects");
  }

  Charges charges;
  std::optional<std::size_t> has_letter;
  std::vector<std::optional<Answered>> answers{
      {{100, R"("c0")"}}, {{101, R"("c1")"}}, {{102, R"("c2")"}}, {{103, R"("c3")"}}};

 private:
  const std::string group_ = "group";
  const std::vector<Header> headers_{{"id", "k0"}, {"id", "k1"}, {"id", "k2"}, {"id", "k3"}};
  const std::vector<Message> messages_ = messages_of(headers_);
};

TEST_F(BookingBatch, IsOneTransactionWithEachAnswerOnce) {
  EXPECT_EQ(book_all(), "completed, completed, completed, completed");
  EXPECT_EQ(effects(), R"(k0="c0" k1="c1" k2="c2" k3="c3")");
  EXPECT_EQ(transactions(), "1");
  EXPECT_EQ(statuses(), "completed completed completed completed");
  EXPECT_EQ(database.value("SELECT count(*) FROM hapax.idempotency_keys WHERE holder IS NULL AND "
                           "answer IS NULL AND expires_at < now() + interval '61 minutes'"),
            "4");
}

TEST_F(BookingBatch, LeavesOutWhatAnotherWorkerHasTakenOver) {
  database.run("UPDATE hapax.idempotency_keys SET token = 200 WHERE key = 'k1'");
  EXPECT_EQ(book_all(), "completed, busy superseded, completed, completed");
  EXPECT_EQ(effects(), R"(k0="c0" k2="c2" k3="c3")");
  EXPECT_EQ(charges.runs["k1"], 0);
  EXPECT_EQ(statuses(), "completed answered completed completed");
}

TEST_F(BookingBatch, LeavesOutWhatWasBookedBefore) {
  database.run("UPDATE hapax.idempotency_keys SET status = 'completed' WHERE key = 'k2'");
  EXPECT_EQ(book_all(), "completed, completed, busy superseded, completed");
  EXPECT_EQ(effects(), R"(k0="c0" k1="c1" k3="c3")");
}

TEST_F(BookingBatch, BooksTheOthersIfOneFailsWhichCountsItsRun) {
  charges.fails = "k2";
  EXPECT_EQ(book_all(), "completed, completed, retry failed, completed");
  EXPECT_EQ(effects(), R"(k0="c0" k1="c1" k3="c3")");
  EXPECT_EQ(statuses(), "completed completed answered completed");
  EXPECT_EQ(charges.runs["k2"], 1) << "it ran more often than its route allows";
  EXPECT_EQ(database.value("SELECT kafka_offset, count FROM hapax.attempts"), "2|1");
}

TEST_F(BookingBatch, BooksNothingOfAPartitionThatAnotherWorkerHas) {
  take(0);
  take(0);
  EXPECT_EQ(book_all(1), "busy fenced, busy fenced, busy fenced, busy fenced");
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(statuses(), "answered answered answered answered");
  EXPECT_EQ(book_all(2), "completed, completed, completed, completed");
}

// An operator decided that the call happened. Its partition starts again, and the message is faster
// than the replay.
TEST_F(BookingBatch, EndsTheLetterOfAMessageThatCameAgain) {
  database.run(
      "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset, "
      "timestamp_type, header_names, header_values, reason, error, attempts, handler, "
      "handler_version, scope, key, first_at) SELECT 'group', 'payments', 1, 0, n, 'none', '{}', "
      "'{}', 'outcome_unknown', '', 0, 'booker', 'v7', 'booking', 'k' || n, now() "
      "FROM generate_series(0, 1) n");
  has_letter = 0;
  EXPECT_EQ(book_all(), "completed, completed, completed, completed");
  EXPECT_EQ(database.value("SELECT kafka_offset, ended_as FROM hapax.dead_letters ORDER BY 1"),
            "0|replayed\n1|null");
}

// For example because an operator has decided that the call did not happen.
TEST_F(BookingBatch, RunsAMessageAloneThatHasNoAnswer) {
  answers[3].reset();
  EXPECT_THAT(book_all(), testing::StartsWith("completed, completed, completed, busy "));
  EXPECT_EQ(effects(), R"(k0="c0" k1="c1" k2="c2")");
  EXPECT_EQ(transactions(), "1");
}

}  // namespace
}  // namespace hapax::flow
