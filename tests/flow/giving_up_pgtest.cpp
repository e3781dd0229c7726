// Giving up is a fact (I5): a dead letter is a committed row that keeps the whole message. Only a
// worker that won the key writes it.
#include <pqxx/pqxx>

#include "flow/flow_case.hpp"

#include "store/message/dead_letter.hpp"

namespace hapax::flow {
namespace {

using GivingUp = FlowCase;
using namespace std::string_literals;

void refuse(const Message& message, Context& context) {
  book(message, context);
  throw std::runtime_error("not today");
}

TEST_F(GivingUp, CountsAttemptsAsRowsUpToTheLimitThenKeepsTheMessage) {
  for (int attempt = 1; attempt < route.retry.max_attempts; ++attempt) {
    const Outcome outcome = process({}, refuse);  // a new process knows nothing: attempts = 0
    EXPECT_EQ(outcome.result, Result::retry);
    EXPECT_EQ(outcome.attempts, attempt);
    EXPECT_EQ(database.count("SELECT count FROM hapax.attempts"), attempt);
  }
  const Outcome outcome = process({}, refuse);
  EXPECT_EQ(outcome.result, Result::failed);
  EXPECT_EQ(outcome.reason, "attempts_exhausted");
  EXPECT_EQ(outcome.attempts, 3);
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(database.value("SELECT status, error FROM hapax.idempotency_keys"), "failed|not today");
  EXPECT_EQ(database.value("SELECT d.reason, d.attempts, d.error, d.first_at = a.first_at "
                           "FROM hapax.dead_letters d, hapax.attempts a"),
            "attempts_exhausted|3|not today|t");
}

TEST_F(GivingUp, DoesSoOnceTheFirstFailureIsOlderThanMaxElapsedAllows) {
  route.retry = {.max_attempts = 100, .max_elapsed = std::chrono::hours(1)};
  const auto hours_pass = [&](const std::string& hours) {
    database.run("UPDATE hapax.attempts SET first_at = first_at - interval '" + hours + "h', " +
                 "last_at = last_at - interval '" + hours + "h'");
  };
  EXPECT_EQ(process({}, refuse).result, Result::retry);
  hours_pass("0.9");
  EXPECT_EQ(process({}, refuse).result, Result::retry);
  hours_pass("0.2");
  const Outcome outcome = process({}, refuse);
  EXPECT_EQ(outcome.result, Result::failed);
  EXPECT_EQ(database.value("SELECT reason, attempts FROM hapax.dead_letters"),
            "attempts_exhausted|3");
}

// The worker was away for longer than that; or the watchdog ended its last run.
TEST_F(GivingUp, ByMaxElapsedNeedsAFailureThatLate) {
  route.retry = {.max_attempts = 100, .max_elapsed = std::chrono::hours(1)};
  EXPECT_EQ(process({.key = "away", .offset = 1}, refuse).result, Result::retry);
  database.run(
      "UPDATE hapax.attempts SET first_at = first_at - interval '2h', "
      "last_at = last_at - interval '2h'");
  EXPECT_EQ(process({.key = "away", .offset = 1}, book, {.attempts = 1}).result, Result::completed);
  runs = 0;
  const Outcome hung = process({.key = "hangs", .offset = 2}, book,
                               {.attempts = 1, .failing = std::chrono::hours(2)});
  EXPECT_EQ(hung.reason, "attempts_exhausted");
  EXPECT_EQ(runs, 0);
}

TEST_F(GivingUp, ByMaxElapsedCountsFromAFailureAndNotFromAnAnnouncement) {
  route.retry = {.max_attempts = 100, .max_elapsed = std::chrono::hours(1)};
  announce_crashes(1);
  database.run("UPDATE hapax.attempts SET first_at = first_at - interval '2h'");
  EXPECT_EQ(process({}, refuse).result, Result::retry);
  EXPECT_EQ(count("hapax.dead_letters"), 0);
}

// `keys forget` and a rewind: the same message runs once more, and fails otherwise.
TEST_F(GivingUp, OfAMessageWhoseKeyWasForgottenOpensItsLetterAgainAndKeepsBothErrors) {
  const auto reject = [](const char* why) {
    return [why](const Message&, Context&) { throw Reject(why); };
  };
  EXPECT_EQ(process({.offset = 7}, reject("first")).result, Result::failed);
  EXPECT_EQ(count("hapax.attempts"), 0);
  database.run(
      "UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'discarded', ended_by = 'ann', "
      "ended_why = 'w', created_at = created_at - interval '1s'; "
      "UPDATE hapax.idempotency_keys SET status = 'forgotten'");
  EXPECT_EQ(process({.offset = 7}, reject("second")).result, Result::failed);
  EXPECT_EQ(key_row(), "failed@7");
  EXPECT_EQ(database.value("SELECT error, ended_as, ended_at FROM hapax.dead_letters"),
            "first|null|null");
  EXPECT_EQ(database.value("SELECT count, last_error FROM hapax.attempts"), "1|second");
  // A redelivery is none of that.
  database.run("UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'discarded'");
  EXPECT_EQ(process({.offset = 7}, reject("third")).reason, "redelivered");
  EXPECT_EQ(database.value("SELECT ended_as, last_error FROM hapax.dead_letters, hapax.attempts"),
            "discarded|second");
}

// A rewind: what never reached the handler is found again, and is no news.
TEST_F(GivingUp, OfWhatIsADeadLetterAlreadyIsARedeliveryForEachReason) {
  const Sent refused{.payload = std::nullopt, .offset = 4};
  const Sent drifted{.payload = "20", .offset = 5};
  EXPECT_EQ(process({}).result, Result::completed);
  EXPECT_EQ(process(refused).reason, "tombstone");
  EXPECT_EQ(process(drifted).reason, "payload_drift");
  for (const Sent& again : {refused, drifted}) {
    const Outcome outcome = process(again);
    EXPECT_EQ(outcome.result, Result::failed);
    EXPECT_EQ(outcome.reason, "redelivered");
  }
  EXPECT_EQ(count("hapax.dead_letters"), 2);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(GivingUp, KeepsTheMessageByteForByte) {
  const std::string payload = "\0nul \xff\xfe invalid \xc3\x28 \\x41 'quote' \"both\" {,}"s;
  const std::string record_key = "\xf0\x28\x8c\x28\0"s;
  const Sent sent{.payload = payload,
                  .offset = 5,
                  .record_key = record_key,
                  .headers = {{"trace", "a\0b"s},
                              {"trace", std::nullopt},
                              {"trace", ""},
                              {"NULL", "NULL"},
                              {"", "nameless"},
                              {"quo\"te\\", "{x,\"y\"}"}},
                  .timestamp_ms = -1,
                  .timestamp_type = TimestampType::create_time};
  EXPECT_EQ(process(sent, [](const Message&, Context&) { throw Reject("no"); }).result,
            Result::failed);
  const auto hex = [](const std::string& bytes) { return *Parameter::bytes(bytes).text(); };
  EXPECT_EQ(database.value("SELECT payload, message_key, message_timestamp, timestamp_type "
                           "FROM hapax.dead_letters"),
            hex(payload) + "|" + hex(record_key) + "|-1|create_time");
  EXPECT_EQ(database.value("SELECT n, v FROM hapax.dead_letters, "
                           "unnest(header_names, header_values) WITH ORDINALITY AS h (n, v, at) "
                           "ORDER BY at"),
            hex("id") + "|" + hex("k1") + "\n" + hex("trace") + "|" + hex("a\0b"s) + "\n" +
                hex("trace") + "|null\n" + hex("trace") + "|\\x\n" + hex("NULL") + "|" +
                hex("NULL") + "\n\\x|" + hex("nameless") + "\n" + hex("quo\"te\\") + "|" +
                hex("{x,\"y\"}"));
}

TEST_F(GivingUp, TellsNullFromEmpty) {
  const auto reject = [](const Message&, Context&) { throw Reject("no"); };
  route.key.tombstone = key::Tombstone::handle;
  process({.key = "null", .payload = std::nullopt, .offset = 1}, reject);
  process({.key = "empty", .payload = "", .offset = 2, .record_key = ""}, reject);
  EXPECT_EQ(database.value("SELECT payload, message_key, message_timestamp, timestamp_type "
                           "FROM hapax.dead_letters ORDER BY kafka_offset"),
            "null|null|null|none\n\\x|\\x|null|none");
}

TEST_F(GivingUp, CannotFailBecauseOfAnErrorsText) {
  const std::string text = "invalid \xff\xc3\x28 " + std::string(100'000, 'e');
  const auto attempt = [&](const Message&, Context&) { throw std::runtime_error(text); };
  const auto reject = [&](const Message&, Context&) { throw Reject(text); };
  const auto retry = [&](const Message&, Context&) { throw Retry(text); };
  EXPECT_EQ(process({.key = "a", .offset = 1}, attempt).result, Result::retry);
  EXPECT_EQ(process({.key = "b", .offset = 2}, reject).result, Result::failed);
  EXPECT_EQ(process({.key = "c", .offset = 3}, retry).result, Result::retry);
  EXPECT_EQ(
      database.value("SELECT left(error, 14) !~ 'invalid', length(error) BETWEEN 8000 AND 8192 "
                     "FROM hapax.dead_letters"),
      "f|t");
}

TEST_F(GivingUp, KeepsAMessageWithoutAKeyWithItsReason) {
  route.key.sources = {{key::Source::Kind::header, {"missing"}}};
  EXPECT_EQ(process({.offset = 1}).reason, "missing_key");
  route.key.sources = {{key::Source::Kind::json, {"/id"}}};
  EXPECT_EQ(process({.payload = "{", .offset = 2}).reason, "not_json");
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(database.value("SELECT kafka_offset, reason, key, payload FROM hapax.dead_letters "
                           "ORDER BY kafka_offset"),
            "1|missing_key|null|\\x3130\n2|not_json|null|\\x7b");
  EXPECT_EQ(process({.payload = "{", .offset = 2}).result, Result::failed);
  EXPECT_EQ(count("hapax.dead_letters"), 2);
}

TEST_F(GivingUp, KeepsAMessageThatAnOperatorSkips) {
  const Outcome outcome = process({}, book, {.skip = "ann: poisonous"});
  EXPECT_EQ(outcome.result, Result::failed);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(database.value("SELECT reason, error FROM hapax.dead_letters"),
            "skipped_by_operator|ann: poisonous");
  EXPECT_EQ(key_row(), "failed@0");
}

// A gives up on m after it lost the partition; B has completed m meanwhile.
TEST_F(GivingUp, WritesNothingIfAnotherWorkerCompletedTheMessage) {
  Processor other = make_processor(2);
  const auto others_completion = [&](const Message&, Context&) { throw Reject("too late"); };
  for (const bool by_reject : {true, false}) {
    const Sent sent{.key = by_reject ? "reject" : "attempts", .offset = by_reject ? 1 : 2};
    const Outcome outcome =
        process(sent,
                [&](const Message& message, Context& context) {
                  // Not while our own claim is held: the zombie's transaction is gone by then.
                  context.pqxx();
                  database.run(
                      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                      "WHERE usename = 'hapax_worker' AND datname = current_database()");
                  database.wait_until(
                      "SELECT count(*) FROM pg_stat_activity WHERE usename = "
                      "'hapax_worker' AND datname = current_database()",
                      "0");
                  EXPECT_EQ(settle(other, sent, book).result, Result::completed);
                  if (by_reject) others_completion(message, context);
                  context.sql("SELECT 1");
                },
                {.attempts = 2, .outages = 2});
    // The rejecting zombie finds its connection gone first.
    EXPECT_EQ(settle(sent, others_completion).result, Result::duplicate) << outcome.detail;
  }
  EXPECT_EQ(count("hapax.dead_letters"), 0);
  EXPECT_EQ(key_row("reject"), "completed@1");
  EXPECT_EQ(key_row("attempts"), "completed@2");
  EXPECT_EQ(effects(), "reject=10 attempts=10");
}

// The last attempt is counted, and between that and the giving up B completes the message.
TEST_F(GivingUp, ChecksTheKeyAgainAfterTheLastAttempt) {
  route.retry.max_attempts = 1;
  database.run(
      "CREATE FUNCTION complete_meanwhile() RETURNS trigger LANGUAGE plpgsql SECURITY "
      "DEFINER AS $$ BEGIN INSERT INTO hapax.idempotency_keys (key, scope, status, "
      "group_id, topic, generation, partition, kafka_offset, expires_at) VALUES ('k1', "
      "'booking', 'completed', 'group', 'payments', 1, 3, 0, now()); RETURN NULL; END $$;"
      "CREATE TRIGGER meanwhile AFTER INSERT ON hapax.attempts FOR EACH ROW EXECUTE "
      "FUNCTION complete_meanwhile()");
  EXPECT_EQ(process({}, refuse).result, Result::duplicate);
  EXPECT_EQ(key_row(), "completed@0");
  EXPECT_EQ(count("hapax.dead_letters"), 0);
}

// Each handler run ends with the process: the announcement stays.
TEST_F(GivingUp, KeepsAMessageThatKilledTheProcessTooOftenWithoutRunningIt) {
  announce_crashes(route.retry.max_crashes);
  const Outcome outcome = process({}, book, {.cautious = true});
  EXPECT_EQ(outcome.result, Result::failed) << outcome.detail;
  EXPECT_EQ(outcome.reason, "crashed");
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(effects(), "");
  EXPECT_EQ(database.value("SELECT reason, convert_from(payload, 'UTF8') FROM hapax.dead_letters"),
            "crashed|10");
  EXPECT_EQ(key_row(), "failed@0");
}

TEST_F(GivingUp, ForgetsTheAnnouncementOfARunThatTheProcessSurvived) {
  for (int run = 0; run < 2 * route.retry.max_crashes; ++run) {
    EXPECT_EQ(process({.key = std::to_string(run), .offset = run}, book, {.cautious = true}).result,
              Result::completed);
    EXPECT_EQ(process({.offset = 99}, [](const Message&, Context&) { throw Retry("later"); },
                      {.cautious = true})
                  .reason,
              run < 2 ? "failed" : "attempts_exhausted");
    if (run == 2) break;
  }
  EXPECT_EQ(database.count("SELECT coalesce(sum(crashes), 0) FROM hapax.attempts"), 0);
}

// A lane whose connection is lost by the message, and that cannot make another for as long.
class OutageInCaution : public GivingUp {
 protected:
  Processor lane(std::uint64_t seed) {
    return Processor(
        [this] {
          if (away_) throw store::DatabaseError({store::Fault::Kind::connection, "", "away"});
          return store::Session(options);
        },
        seed);
  }
  const Body loses_postgres = [this](const Message&, Context& context) {
    away_ = true;
    context.sql("SELECT pg_terminate_backend(pg_backend_pid())");
  };
  void comes_back() { away_ = false; }
  int crashes() { return database.count("SELECT coalesce(sum(crashes), 0) FROM hapax.attempts"); }

 private:
  bool away_ = false;
};

// Found by tests/chaos, SEED=4101: each outage that cut a cautious run counted as a crash.
TEST_F(OutageInCaution, IsNoCrashOnWhicheverLaneItIsMet) {
  Processor lanes[] = {lane(1), lane(2)};
  Given given{.cautious = true};
  for (int run = 0; run < 2 * route.retry.max_crashes; ++run) {
    const Outcome outcome = process_on(lanes[run % 2], {}, loses_postgres, given);
    EXPECT_EQ(outcome.result, Result::outage) << outcome.reason;
    given.announced = outcome.announced;
    const Outcome away = process_on(lanes[run % 2], {}, book, given);
    EXPECT_EQ(away.result, Result::outage) << away.reason;
    given.announced = away.announced;
    EXPECT_TRUE(given.announced);
    comes_back();
  }
  const Outcome outcome = process_on(lanes[0], {}, book, given);
  EXPECT_EQ(outcome.result, Result::completed) << outcome.reason;
  EXPECT_FALSE(outcome.announced);
  EXPECT_EQ(count("hapax.attempts"), 0);
}

TEST_F(OutageInCaution, DoesNotTakeBackWhatAnotherLaneAnnounced) {
  Processor first = lane(1), second = lane(2);
  Given given{.cautious = true};
  given.announced = process_on(first, {}, loses_postgres, given).announced;
  comes_back();
  const Body looks = [&](const Message& message, Context& context) {
    std::string why;
    EXPECT_TRUE(first.reachable(why)) << why;
    EXPECT_EQ(crashes(), 1) << "a process that dies now leaves no trace";
    book(message, context);
  };
  EXPECT_EQ(process_on(second, {}, looks, given).result, Result::completed);
  EXPECT_EQ(runs, 2);
}

// The process that announced it is gone, and caution was over when the next owner came to it.
TEST_F(OutageInCaution, LeavesNoRowBehindACompletedMessage) {
  {
    Processor gone = lane(1);
    EXPECT_EQ(process_on(gone, {}, loses_postgres, {.cautious = true}).result, Result::outage);
  }
  EXPECT_EQ(crashes(), 1);
  EXPECT_EQ(process({}, book, {.remembered = true}).result, Result::completed);
  EXPECT_EQ(count("hapax.attempts"), 0);
}

TEST(Storable, CutsAndReplacesWhatPostgresqlTextCannotHold) {
  EXPECT_EQ(store::storable("caf\u00e9"), "caf\u00e9");
  EXPECT_EQ(store::storable("a\0b"s), "ab");
  EXPECT_EQ(store::storable("a\xff"s), "a\uFFFD");
  // A character that the cut goes through.
  const std::string cut = store::storable(std::string(store::kMaxErrorText - 1, 'x') + "\u00e9");
  EXPECT_EQ(cut, std::string(store::kMaxErrorText - 1, 'x') + "\uFFFD");
}

// As a payload of half a gigabyte would: the statement, or the row, is more than PostgreSQL takes.
TEST_F(GivingUp, KeepsCoordinatesAndErrorIfTheMessageIsMoreThanPostgresCanTake) {
  database.run(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF NEW.payload IS NOT NULL THEN RAISE 'row is too big' USING ERRCODE = '54000'; END IF; "
      "RETURN NEW; END $$;"
      "CREATE TRIGGER refuse BEFORE INSERT ON hapax.dead_letters "
      "FOR EACH ROW EXECUTE FUNCTION refuse()");
  const Outcome outcome =
      process({.offset = 5}, [](const Message&, Context&) { throw Reject("no"); });
  EXPECT_EQ(outcome.result, Result::failed);
  EXPECT_EQ(outcome.reason, "rejected");
  EXPECT_EQ(database.value("SELECT kafka_offset, reason, payload, cardinality(header_names), key, "
                           "error LIKE 'no (the message itself could not be kept: %' "
                           "FROM hapax.dead_letters"),
            "5|rejected|null|0|k1|t");
  EXPECT_EQ(database.value("SELECT status FROM hapax.idempotency_keys"), "failed");
}

// "could not open relation", after a table was rewritten: a new session knows better.
TEST_F(GivingUp, KeepsTheMessageThoughAnInternalErrorOfPostgresqlPassesBy) {
  database.run(
      "CREATE TABLE broken (n int); GRANT SELECT ON broken TO hapax_worker;"
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF NEW.payload IS NOT NULL AND EXISTS (SELECT FROM broken) THEN "
      "RAISE 'internal' USING ERRCODE = 'XX000'; END IF; "
      "RETURN NEW; END $$;"
      "CREATE TRIGGER refuse BEFORE INSERT ON hapax.dead_letters "
      "FOR EACH ROW EXECUTE FUNCTION refuse()");
  EXPECT_EQ(process({.key = "k0", .offset = 4}).result, Result::completed);
  database.run("INSERT INTO broken VALUES (1)");
  const Body reject = [](const Message&, Context&) { throw Reject("no"); };
  EXPECT_EQ(process({.offset = 5}, reject).result, Result::busy);
  EXPECT_EQ(count("hapax.dead_letters"), 0);
  database.run("DELETE FROM broken");
  EXPECT_EQ(process({.offset = 5}, reject).result, Result::failed);
  EXPECT_EQ(database.value("SELECT kafka_offset, convert_from(payload, 'UTF8') "
                           "FROM hapax.dead_letters"),
            "5|10");
}

TEST_F(GivingUp, KeepsADriftedMessagesCoordinatesIfItsBytesAreTooMuch) {
  EXPECT_EQ(process({.offset = 4}).result, Result::completed);
  database.run(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF NEW.payload IS NOT NULL THEN RAISE 'row is too big' USING ERRCODE = '54000'; END IF; "
      "RETURN NEW; END $$;"
      "CREATE TRIGGER refuse BEFORE INSERT ON hapax.dead_letters "
      "FOR EACH ROW EXECUTE FUNCTION refuse()");
  const Outcome outcome = process({.payload = R"({"amount_minor": 99})", .offset = 5});
  EXPECT_EQ(outcome.result, Result::failed);
  EXPECT_EQ(database.value("SELECT kafka_offset, reason, payload, other->>'offset' "
                           "FROM hapax.dead_letters"),
            "5|payload_drift|null|4");
  EXPECT_EQ(database.value("SELECT status, kafka_offset FROM hapax.idempotency_keys"),
            "completed|4");
}

}  // namespace
}  // namespace hapax::flow
