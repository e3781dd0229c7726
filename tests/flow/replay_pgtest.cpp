// Second runs of dead letters: the message as it was, and the key rules.

#include <thread>

#include "flow/replay_case.hpp"

namespace hapax::flow {
namespace {

class Replay : public ReplayCase {};

TEST_F(Replay, RunsOnceAndEndsTheDeadLetter) {
  const auto letter = dead();
  EXPECT_EQ(run_next().result, ReplayResult::nothing) << "nobody wants it";
  want(letter);
  EXPECT_EQ(run_next().result, ReplayResult::completed);
  EXPECT_EQ(run_next().result, ReplayResult::nothing);
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(key_row(), "completed@0");
  EXPECT_EQ(state_of(letter), kReplayedByAnn);
  EXPECT_EQ(replay_row(), "completed|null");
}

TEST_F(Replay, ByPositionRunsOnceAndKeepsNoResultEither) {
  route.key.sources = {{key::Source::Kind::position, {}}};
  const auto letter = dead();
  want(letter);
  EXPECT_EQ(run_next([](const Message&, Context& context) {
              context.result({{"a", 1}});
            }).result,
            ReplayResult::later);
  database.run("UPDATE hapax.replays SET next_try = now()");
  EXPECT_EQ(run_next().result, ReplayResult::completed);
  want(letter);
  EXPECT_EQ(run_next().result, ReplayResult::nothing) << "it has ended";
  EXPECT_EQ(effects(), "k1=10");
  EXPECT_EQ(state_of(letter), kReplayedByAnn);
}

// Nothing tells whether its message then took effect. That it failed again does.
TEST_F(Replay, ByPositionIsRefusedAfterAnOperatorLetTheMessageRunAgain) {
  route.key.sources = {{key::Source::Kind::position, {}}};
  const auto letter = dead({.offset = 7});
  const auto decide = [&](int offset, const std::string& at = "clock_timestamp()") {
    database.run(
        "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, "
        "kafka_offset, reason, detail, halted_by, ended_at, decision) VALUES ('group', 'payments', "
        "3, false, 1, " +
        std::to_string(offset) + ", 'unknown_below_highest', '', 'w', " + at + ", 'run')");
  };
  decide(8);  // behind it
  decide(5);
  database.run("DELETE FROM hapax.positions");
  EXPECT_EQ(process({.offset = 7}).result, Result::completed) << "an operator said so";
  want(letter);
  EXPECT_NE(run_next().detail.find("may have taken effect"), std::string::npos);
  EXPECT_EQ(effects(), "k1=10");

  const auto again = dead({.offset = 9});
  decide(9);
  database.run("DELETE FROM hapax.positions");
  EXPECT_EQ(process({.offset = 9}, reject_it).result, Result::failed);
  want(again);
  EXPECT_EQ(run_next().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=10 k1=10");

  const auto late = dead({.offset = 20});
  decide(20, "clock_timestamp() - interval '1 minute'");  // the clock went back
  database.run("DELETE FROM hapax.positions");
  EXPECT_EQ(process({.offset = 20}).result, Result::completed);
  want(late);
  EXPECT_NE(run_next().detail.find("may have taken effect"), std::string::npos);
}

TEST_F(Replay, MakesARedeliveryADuplicate) {
  want(dead());
  run_next();
  EXPECT_EQ(process({}).result, flow::Result::duplicate);
  EXPECT_EQ(process({.payload = "11", .offset = 7}).reason, "payload_drift");
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(Replay, PublishesOnceAndUnderTheKeysOfTheMessage) {
  auto publishing = std::make_shared<Publishing>();
  publishing->topics = {{"receipts", 10'000}};
  route.publishing = publishing;
  const Body publish = [](const Message& message, Context& context) {
    for (const char* name : {"receipt", ""})
      context.publish("receipts", {.payload = std::string(*message.payload()), .name = name});
  };
  constexpr const char* kRecords =
      "SELECT string_agg(concat_ws(' ', topic, convert_from(payload, 'UTF8'), source_offset, "
      "idempotency_key), ', ' ORDER BY id) FROM hapax.outbox";
  EXPECT_EQ(process({}, publish).result, flow::Result::completed);
  const std::string of_the_message = database.value(kRecords);
  database.run("DELETE FROM hapax.outbox; DELETE FROM hapax.idempotency_keys");  // a lost tail
  const auto letter = dead({}, [&](const Message& message, Context& context) {
    publish(message, context);
    throw Reject("no");
  });
  EXPECT_EQ(count("hapax.outbox"), 0);
  want(letter);
  EXPECT_EQ(run_next(publish).result, ReplayResult::completed);
  EXPECT_EQ(database.value(kRecords), of_the_message);
  order(letter);
  EXPECT_EQ(run_next(publish).result, ReplayResult::refused) << "it has ended";
  EXPECT_EQ(database.value(kRecords), of_the_message);
}

TEST_F(Replay, GivesTheHandlerTheMessageAsItWas) {
  want(dead({.payload = std::string("\0\xff", 2),
             .offset = 42,
             .record_key = "",
             .headers = {{"h", std::nullopt}, {"h", ""}, {"h", std::string("\0x", 2)}},
             .timestamp_ms = 17,
             .timestamp_type = TimestampType::log_append_time}));
  EXPECT_EQ(run_next([](const Message& message, Context&) {
              EXPECT_EQ(message.topic(), "payments");
              EXPECT_EQ(message.partition(), 3);
              EXPECT_EQ(message.offset(), 42);
              EXPECT_EQ(store::timestamp_ms(message), 17);
              EXPECT_EQ(message.timestamp_type(), TimestampType::log_append_time);
              EXPECT_EQ(message.key(), "");
              EXPECT_EQ(message.payload(), std::string("\0\xff", 2));
              ASSERT_EQ(message.headers().size(), 4U);
              EXPECT_EQ(message.headers()[1].value, std::nullopt);
              EXPECT_EQ(message.headers()[2].value, "");
              EXPECT_EQ(message.headers()[3].value, std::string("\0x", 2));
            }).result,
            ReplayResult::completed);
}

TEST_F(Replay, GivesTombstonesAsTombstones) {
  route.key.tombstone = key::Tombstone::handle;
  want(dead({.payload = std::nullopt}));
  EXPECT_EQ(run_next([](const Message& message, Context&) {
              EXPECT_EQ(message.payload(), std::nullopt);
            }).result,
            ReplayResult::completed);
}

// Its row shows null in place of the payload. That is no tombstone.
TEST_F(Replay, RefusesALetterWithoutItsBytes) {
  route.key.tombstone = key::Tombstone::handle;
  route.key.sources = {{key::Source::Kind::coordinates, {}}};
  const auto letter = dead_without_bytes();
  order(letter);
  expect_refused(letter, "was more than PostgreSQL takes, or erased");
  // As hapax wrote it before it kept the fact.
  database.run("UPDATE hapax.dead_letters SET other = NULL");
  order(letter);
  expect_refused(letter, "payments/3/0");
}

// Also if PostgreSQL does not take all of it: a second run sees what the first one saw, or there is
// none.
TEST_F(Replay, ShowsTheHandlerTheMessageThatWasGivenUpOrNone) {
  route.key.tombstone = key::Tombstone::handle;
  route.key.sources = {{key::Source::Kind::coordinates, {}}};
  database.run(
      "CREATE TABLE refused (shape int); GRANT SELECT ON refused TO hapax_worker;"
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF EXISTS (SELECT FROM refused) AND (NEW.payload IS NOT NULL OR NEW.message_key IS NOT "
      "NULL) "
      "THEN RAISE 'row is too big' USING ERRCODE = '54000'; END IF; RETURN NEW; END $$;"
      "CREATE TRIGGER refuse BEFORE INSERT ON hapax.dead_letters "
      "FOR EACH ROW EXECUTE FUNCTION refuse()");
  const auto view = [](const Message& message) {
    std::string text = std::string(message.payload().value_or("null")) + " " +
                       std::string(message.key().value_or("null"));
    for (const Header& header : message.headers())
      text += " " + std::string(header.name) + "=" + std::string(header.value.value_or("null"));
    return text;
  };
  using Bytes = std::optional<std::string>;
  std::int64_t offset = 0;
  for (const bool refuses : {false, true}) {
    database.run(refuses ? "INSERT INTO refused VALUES (1)" : "DELETE FROM refused");
    for (const Bytes& payload : {Bytes("10"), Bytes(""), Bytes()})
      for (const Bytes& record_key : {Bytes("k"), Bytes()}) {
        const bool is_lost = refuses && (payload || record_key);
        std::string first, second = "nothing";
        order(dead({.payload = payload, .offset = ++offset, .record_key = record_key},
                   [&](const Message& message, Context&) {
                     first = view(message);
                     throw Reject("no");
                   }));
        const auto result =
            run_next([&](const Message& message, Context&) { second = view(message); }).result;
        EXPECT_EQ(result, is_lost ? ReplayResult::refused : ReplayResult::completed) << first;
        EXPECT_EQ(second, is_lost ? "nothing" : first);
      }
  }
}

TEST_F(Replay, RunsAnEditedPayloadInPlaceOfTheBytesThatWereNotKept) {
  route.key.sources = {{key::Source::Kind::json, {"/id"}}};
  const auto letter = dead_without_bytes({.payload = R"({"id": "k1", "much": "more"})"});
  order(letter, true);
  EXPECT_EQ(run_next([](const Message& message, Context& context) {
              context.sql("INSERT INTO effects (key, note) VALUES ('k1', $1)", *message.payload());
            }).result,
            ReplayResult::completed);
  EXPECT_EQ(effects(), R"(k1={"id": "k1"})");
  EXPECT_EQ(state_of(letter), kReplayedByAnn);
}

TEST_F(Replay, RunsAnEditedPayloadAndKeepsTheOriginal) {
  const auto letter = dead();
  want(letter, "11");
  EXPECT_EQ(run_next().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=11");
  EXPECT_EQ(database.value("SELECT convert_from(payload, 'UTF8') FROM hapax.dead_letters"), "10");
  EXPECT_EQ(process({}).result, flow::Result::duplicate) << "the original, delivered again";
}

// The key rules, each with what may have happened to the key meanwhile.

TEST_F(Replay, TakesOverAFailedKeyOfAnotherMessage) {
  const auto letter = dead();
  dead({.offset = 5});  // the producer tried again, and was rejected again
  want(letter);
  EXPECT_EQ(run_next().result, ReplayResult::completed);
  EXPECT_EQ(key_row(), "completed@0");
}

TEST_F(Replay, TakesOverAForgottenKey) {
  want(dead());
  database.run("UPDATE hapax.idempotency_keys SET status = 'forgotten'");
  EXPECT_EQ(run_next().result, ReplayResult::completed);
}

TEST_F(Replay, IsRefusedIfTheProducersNextTryCompleted) {
  const auto letter = dead();
  EXPECT_EQ(process({.offset = 9}).result, flow::Result::completed);
  database.run("DELETE FROM effects");
  want(letter);
  expect_refused(letter,
                 "completed meanwhile by payments/3/9 (group group, generation 1): the operation "
                 "took effect, unless ");
}

TEST_F(Replay, IsRefusedIfTheKeyIsStarted) {
  const auto letter = dead();
  database.run("UPDATE hapax.idempotency_keys SET status = 'started'");
  want(letter);
  expect_refused(letter, "`started`: the operation is called for payments/3/0");
}

TEST_F(Replay, IsRefusedIfTheKeyIsForgottenByRetention) {
  const auto letter = dead();
  database.run("DELETE FROM hapax.idempotency_keys");
  want(letter);
  expect_refused(letter, "its key is not known any more");
  EXPECT_EQ(key_row(), "");
}

TEST_F(Replay, IsRefusedIfTheRouteDerivesAnotherKeyNow) {
  const auto letter = dead({.headers = {{"other", "k2"}}});
  route.key.sources = {{key::Source::Kind::header, {"other"}}};
  want(letter);
  expect_refused(letter, "another key");
}

TEST_F(Replay, IsRefusedIfTheRoutesScopeChanged) {
  const auto letter = dead();
  route.key.scope = "elsewhere";
  want(letter);
  expect_refused(letter, "scope \"booking\"");
}

TEST_F(Replay, RunsAKeylessLetterWhileKeysSinceThenAreKept) {
  want(dead_without_key());
  EXPECT_EQ(run_next().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=10");
}

// If deriving its key kills the process, its letter cannot tell whether it was a duplicate.
TEST_F(Replay, RunsALetterThatCrashedWithoutItsKeyOnlyIfNoKeyWasForgotten) {
  const auto crash = [&](std::int64_t offset) {
    announce_crashes(route.retry.max_crashes + 1, offset);
    EXPECT_EQ(process({.offset = offset}, book, {.cautious = true}).reason, "crashed");
  };
  crash(1);
  want(1);
  EXPECT_EQ(run_next().result, ReplayResult::completed);
  database.run("DELETE FROM effects");
  crash(2);  // a duplicate
  database.run("DELETE FROM hapax.idempotency_keys");
  want(2);
  expect_refused(2, "before its key was known");
}

// What completed it in between, and was forgotten, cannot be told from the failure after that.
TEST_F(Replay, IsRefusedIfItsKeyFailedAgainAfterItCouldBeForgotten) {
  const auto letter = dead();
  dead({.offset = 77});  // another message of its key
  database.run("UPDATE hapax.dead_letters SET created_at = now() - interval '61 minutes'");
  want(letter);
  expect_refused(letter, "older than routes[].retention");
}

// By a shorter retention: the present one would still know it.
TEST_F(Replay, IsRefusedIfACompletionSinceItWasForgotten) {
  dead_without_key();
  EXPECT_EQ(process({.offset = 9}).result, flow::Result::completed);  // the corrected message
  database.run("DELETE FROM hapax.idempotency_keys; DELETE FROM effects");
  want(1);
  expect_refused(1, "or a forgotten key");
}

TEST_F(Replay, RunsIfOnlyCompletionsBeforeItWereForgotten) {
  EXPECT_EQ(process({.key = "k2", .offset = 9}).result, flow::Result::completed);
  database.run("DELETE FROM hapax.idempotency_keys; DELETE FROM effects");
  dead_without_key();
  want(1);
  EXPECT_EQ(run_next().result, ReplayResult::completed);
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(Replay, IsRefusedIfACompletionIsForgottenWhileItWaitsForTheKey) {
  dead_without_key();
  EXPECT_EQ(process({.offset = 9}).result, flow::Result::completed);
  database.run("DELETE FROM effects");
  want(1);
  store::Session remover(options);
  store::Transaction removal(remover);
  removal.run(std::string("DELETE FROM hapax.idempotency_keys"));
  std::jthread replay([&] { expect_refused(1, "or a forgotten key"); });
  database.wait_until(
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
      "wait_event_type = 'Lock'",
      "1");
  removal.commit();
}

// hapax never knew whether the message had taken effect before.
TEST_F(Replay, IsRefusedIfTheMessageWasSkippedAsAForgottenOne) {
  process({.offset = 4}, book, {.guard_below = 9, .skip = "ann: leave it out"});
  database.run(
      "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, "
      "kafka_offset, reason, detail, halted_by) VALUES ('group', 'payments', 3, false, 1, "
      "4, 'unknown_below_highest', '', 'w')");
  want(1);
  expect_refused(1, "whether the operation was completed since");
}

TEST_F(Replay, WaitsIfTheDatabaseIsACopy) {
  const auto letter = dead();
  want(letter);
  database.run("UPDATE hapax.store SET database_oid = 1");
  EXPECT_EQ(run_next().result, ReplayResult::outage);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(state_of(letter), "open");
}

TEST_F(Replay, IsRefusedIfAKeylessLetterIsOlderThanTheKeys) {
  dead_without_key();
  database.run("UPDATE hapax.dead_letters SET created_at = now() - interval '61 minutes'");
  want(1);
  expect_refused(1, "older than routes[].retention");
}

TEST_F(Replay, RunsAnEditedPayloadUnderItsOwnKeyOnlyWhileKeysAreKept) {
  route.key.sources = {{key::Source::Kind::json, {"/id"}}};
  const Body book_payload = [](const Message& message, Context& context) {
    context.sql("INSERT INTO effects (key, note) VALUES ($1, 'x')", message.json().at("id"));
  };
  const auto young = dead({.payload = R"({"id":"a"})"});
  const auto old = dead({.payload = R"({"id":"b"})", .offset = 1});
  database.run(
      "UPDATE hapax.dead_letters SET created_at = now() - interval '61 minutes' "
      "WHERE id = " +
      std::to_string(old));
  want(young, R"({"id":"a2"})");
  want(old, R"({"id":"b2"})");
  EXPECT_EQ(run_next(book_payload).result, ReplayResult::completed);
  EXPECT_EQ(key_row("a2"), "completed@0");
  const Replayed replayed = run_next(book_payload);
  EXPECT_EQ(replayed.result, ReplayResult::refused) << replayed.detail;
  EXPECT_EQ(effects(), "a2=x");
}

TEST_F(Replay, IsRefusedWhileItStillHasNoKey) {
  route.key.sources = {{key::Source::Kind::header, {"absent"}}};
  const auto letter = dead();
  want(letter);
  expect_refused(letter, "missing_key");
}

TEST_F(Replay, IsRefusedIfTheLetterWasEndedBesideIt) {
  const auto letter = dead();
  want(letter);
  database.run("UPDATE hapax.dead_letters SET ended_at = now(), ended_as = 'discarded'");
  EXPECT_EQ(run_next().result, ReplayResult::refused);
  EXPECT_EQ(runs, 0);
}

}  // namespace
}  // namespace hapax::flow
