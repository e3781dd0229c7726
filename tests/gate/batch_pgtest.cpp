// Requests that share a transaction: each has the outcome that it would have alone.
#include "gate/batch_case.hpp"

namespace hapax::gate {
namespace {

using namespace std::chrono_literals;

class GateBatch : public BatchCase<GateCase> {
 protected:
  // Each is booked, but k2 fails by `failing`. Returns the answer of k2.
  Reply ask_with_a_bad_one(const Body& failing) {
    body = [failing](const Message& message, Context& context) {
      if (message.header("idempotency-key") == "k2") failing(message, context);
      book(message, context);
    };
    const auto replies = ask_batch({{"k1"}, {"k2"}, {"k3"}, {"k4"}});
    for (const std::size_t good : {0U, 2U, 3U}) {
      EXPECT_EQ(replies[good].status, 201) << replies[good].body;
      EXPECT_EQ(replies[good].header("idempotent-replayed"), "");
    }
    return replies[1];
  }
};

TEST_F(GateBatch, EachGetsItsOwnAnswer) {
  body = [](const Message& message, Context& context) {
    book(message, context);
    const std::string who = std::string(*message.header(":tenant")) + " " +
                            std::string(*message.header("idempotency-key")) + " " +
                            std::string(*message.payload());
    if (*message.payload() == "result") return context.result({{"for", who}});
    if (*message.payload() == "nothing") return;
    context.respond(202, {{"Set-Cookie", who}}, who);
  };
  const auto replies = ask_batch(
      {{"k1", "1", "ann"}, {"k1", "2", "bob"}, {"k2", "result", "bob"}, {"k3", "nothing", "ann"}});
  EXPECT_EQ(replies[0].body, "ann k1 1");
  EXPECT_EQ(replies[0].header("set-cookie"), "ann k1 1");
  EXPECT_EQ(replies[1].body, "bob k1 2");
  EXPECT_EQ(replies[2].body, R"({"for":"bob k2 result"})");
  EXPECT_EQ(replies[3].status, 201);
  for (const Reply& reply : replies) {
    EXPECT_EQ(reply.header("idempotent-replayed"), "");
    EXPECT_EQ(reply.header("idempotency-key-lifetime"), "604800");
    EXPECT_NE(reply.header("idempotency-key-expires"), "");
  }
  EXPECT_EQ(transactions(), "k1+k1+k2+k3");
  EXPECT_EQ(handled, 4);
  const Reply again =
      ask(request("POST", "/payments",
                  {{"Authorization", "Bearer token-of-bob"}, {"Idempotency-Key", "k1"}}, "2"));
  EXPECT_EQ(again.body, "bob k1 2");
  EXPECT_EQ(again.header("idempotent-replayed"), "true");
  EXPECT_EQ(again.header("set-cookie"), "");
}

// Of the answer, in seconds.
std::int64_t expiry_of(const Reply& reply) {
  std::tm when = {};
  if (::strptime(reply.header("idempotency-key-expires").c_str(), "%a, %d %b %Y %H:%M:%S GMT",
                 &when) == nullptr)
    throw std::runtime_error(reply.header("idempotency-key-expires"));
  return ::timegm(&when);
}

// PostgreSQL counts from the transaction's begin. The process's clock may show another second.
TEST_F(GateBatch, EachIsToldWhenItExpiresAsARetryIs) {
  body = [](const Message& message, Context& context) {
    if (message.header("idempotency-key") != "k2") context.sql("SELECT pg_sleep(2.2)");
    if (message.header("idempotency-key") == "k3") throw Reject("no");  // stored by another run
    book(message, context);
  };
  std::vector<Reply> replies = ask_batch({{"k1"}, {"k2"}});
  replies.push_back(post("k3"));
  replies.push_back(post("k4"));
  EXPECT_EQ(transactions(), "k1+k2 k4");
  for (const std::size_t i : {3U, 0U, 1U, 2U}) {
    const Reply again = post("k" + std::to_string(i + 1));
    EXPECT_EQ(again.header("idempotent-replayed"), "true");
    EXPECT_LE(std::abs(expiry_of(replies[i]) - expiry_of(again)), 1) << i;
  }
}

TEST_F(GateBatch, NoMoreThanTheRouteAllowsAndNoLaneMoreThanItsShare) {
  config.base.routes.back().batch = 2;
  ask_batch({{"k1"}, {"k2"}, {"k3"}, {"k4"}, {"k5"}});
  EXPECT_EQ(transactions(), "k1+k2 k3+k4 k5");
}

TEST_F(GateBatch, WithABatchOfOneNoneShares) {
  config.base.routes.back().batch = 1;
  ask_batch({{"k1"}, {"k2"}, {"k3"}});
  EXPECT_EQ(transactions(), "k1 k2 k3");
}

TEST_F(GateBatch, OneThatIsRejectedLeaves) {
  const Reply bad =
      ask_with_a_bad_one([](const Message&, Context&) { throw Reject("not this one"); });
  EXPECT_EQ(bad.status, 422);
  EXPECT_EQ(transactions(), "k1+k3+k4");
  EXPECT_EQ(handled, 6);  // k1 k2 | k1 k3 k4 | k2
  EXPECT_EQ(keys(), 5);
  EXPECT_EQ(post("k2").header("idempotent-replayed"), "true");
}

TEST_F(GateBatch, OneThatFailsLeavesAndRunsAgainLater) {
  const Reply bad =
      ask_with_a_bad_one([n = std::make_shared<int>(0)](const Message& m, Context& c) {
        if (++*n > 2) return;
        book(m, c);
        throw Retry("not now", 3s);
      });
  EXPECT_EQ(bad.status, 503);
  EXPECT_EQ(bad.header("retry-after"), "3");
  EXPECT_EQ(transactions(), "k1+k3+k4");
  EXPECT_EQ(post("k2").status, 201);
}

TEST_F(GateBatch, OneWhoseStatementFailsLeavesEvenIfItsHandlerGoesOn) {
  const Reply bad = ask_with_a_bad_one([](const Message&, Context& context) {
    try {
      context.sql("SELECT 1/0");
    } catch (const std::exception&) {
    }
  });
  EXPECT_EQ(bad.status, 500) << bad.body;
  EXPECT_EQ(effects(), "k1=10 k3=10 k4=10");
}

// It would judge all requests of a transaction together.
TEST_F(GateBatch, NoneSharesIfAConstraintWaitsForTheCommit) {
  database.run(
      "CREATE FUNCTION even() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF (SELECT count(*) % 2 = 1 FROM effects) THEN RAISE EXCEPTION 'odd' "
      "USING ERRCODE = '23514'; END IF; RETURN NULL; END $$;"
      "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW EXECUTE FUNCTION even()");
  for (const Reply& reply : ask_batch({{"k1"}, {"k2"}})) EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(effects(), "");
}

TEST_F(GateBatch, ATriggerSeesOnlyTheRowsOfRequestsBefore) {
  database.run(
      "CREATE FUNCTION number() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "UPDATE effects SET note = (SELECT count(*) FROM effects) WHERE id = new.id; "
      "RETURN NULL; END $$;"
      "CREATE TRIGGER numbered AFTER INSERT ON effects FOR EACH ROW EXECUTE FUNCTION number()");
  body = [](const Message& message, Context& context) {
    context.insert("effects", {"key"}, *message.header("idempotency-key"));
  };
  ask_batch({{"k1"}, {"k2"}, {"k3"}});
  EXPECT_EQ(effects(), "k1=1 k2=2 k3=3");
  EXPECT_EQ(database.value("SELECT count(DISTINCT xmin::text) FROM effects"), "1");
}

// Within a transaction that is shared it would give up sooner than alone, and the total be wrong.
TEST_F(GateBatch, ATriggerThatCatchesALockTimeoutWaitsAsLongAsAlone) {
  database.run(
      "CREATE TABLE total (n int); INSERT INTO total VALUES (0);"
      "GRANT SELECT, UPDATE ON total TO hapax_worker;"
      "CREATE FUNCTION add() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "BEGIN UPDATE total SET n = n + 1; EXCEPTION WHEN OTHERS THEN NULL; END; "
      "RETURN NULL; END $$;"
      "CREATE TRIGGER added AFTER INSERT ON effects FOR EACH ROW EXECUTE FUNCTION add()");
  options.lock_timeout = options.statement_timeout = 600s;
  store::Session other(database.owner());
  store::Transaction holding(other);
  holding.run(std::string("UPDATE public.total SET n = n"));
  const auto clients = send_batch({{"k1"}, {"k2"}});
  database.wait_until(
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
      "wait_event_type = 'Lock' AND query_start < clock_timestamp() - interval '200 ms'",
      "1");
  holding.rollback();
  for (const auto& client : clients) EXPECT_EQ(client->read().status, 201);
  EXPECT_EQ(database.value("SELECT n FROM total"), "2");
}

// On hapax's own table, because nothing shares if a table of the user's has such a trigger.
TEST_F(GateBatch, OneThatFailsAtTheCommitFailsAlone) {
  database.run(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE EXCEPTION 'no' USING ERRCODE = '23514'; END $$;"
      "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON hapax.idempotency_keys "
      "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.key = 'k2') "
      "EXECUTE FUNCTION refuse()");
  EXPECT_EQ(ask_with_a_bad_one([](const Message&, Context&) {}).status, 500);
  EXPECT_EQ(handled, 8) << "in a batch, and alone";
  EXPECT_EQ(effects(), "k1=10 k3=10 k4=10");
  EXPECT_EQ(keys(), 4);
}

TEST_F(GateBatch, AfterASerializationFailureAllRunAlone) {
  database.run(
      "CREATE SEQUENCE commits; GRANT USAGE ON SEQUENCE commits TO hapax_worker;"
      "CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF nextval('commits') = 1 THEN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END IF; "
      "RETURN NULL; END $$;"
      "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON hapax.idempotency_keys "
      "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.key = 'k2') "
      "EXECUTE FUNCTION fail_once()");
  EXPECT_EQ(ask_with_a_bad_one([](const Message&, Context&) {}).status, 201);
  EXPECT_EQ(handled, 8) << "in a batch, and alone";
  EXPECT_EQ(effects(), "k1=10 k2=10 k3=10 k4=10");
}

// The first of them also in the way of the second: their rows are one statement.
TEST_F(GateBatch, TwoThatExcludeEachOtherDoSoAlone) {
  database.run("CREATE UNIQUE INDEX ON effects (note)");
  body = [](const Message& message, Context& context) {
    context.insert("effects", {"key", "note"}, *message.header("idempotency-key"),
                   *message.payload());
  };
  const auto replies = ask_batch({{"k1", "a"}, {"k2", "a"}, {"k3", "b"}});
  EXPECT_EQ(replies[0].status, 204);
  EXPECT_EQ(replies[1].status, 500);
  EXPECT_EQ(replies[2].status, 204);
  EXPECT_EQ(effects(), "k1=a k3=b");
}

class GateBatchLeaving : public GateBatch, public testing::WithParamInterface<const char*> {};

TEST_P(GateBatchLeaving, NoOtherSees) {
  body = [](const Message& message, Context& context) {
    if (*message.header("idempotency-key") == "k2") context.sql(GetParam());
    const Rows who = context.sql("SELECT coalesce(current_setting('hapax_test.who', true), '')");
    context.insert("effects", {"key", "note"}, *message.header("idempotency-key"),
                   who[0][0].text());
  };
  for (const Reply& reply : ask_batch({{"k1"}, {"k2"}, {"k3"}})) EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(effects(), "k1= k2=k2 k3=");
}

INSTANTIATE_TEST_SUITE_P(Settings, GateBatchLeaving,
                         testing::Values("SET LOCAL hapax_test.who = 'k2'",
                                         "SET hapax_test.who = 'k2'",
                                         "SELECT set_config('hapax_test.who', 'k2', true)"));

TEST_F(GateBatch, AHandlerThatNeedsMoreThanPlainStatementsRunsAlone) {
  body = [](const Message& message, Context& context) {
    try {
      context.pqxx().exec("SELECT 1");
    } catch (const std::exception&) {  // must not help it
    }
    book(message, context);
  };
  for (const Reply& reply : ask_batch({{"k1"}, {"k2"}, {"k3"}})) EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(transactions(), "k1 k2 k3");
}

TEST_F(GateBatch, OneThatEndsTheTransactionEndsItsOwn) {
  body = [](const Message& message, Context& context) {
    book(message, context);
    if (*message.header("idempotency-key") == "k2") context.sql("COMMIT");
  };
  const auto replies = ask_batch({{"k1"}, {"k2"}, {"k3"}});
  EXPECT_EQ(replies[0].status, 201);
  EXPECT_EQ(replies[1].status, 500);
  EXPECT_NE(replies[1].body.find("in-part"), std::string::npos) << replies[1].body;
  EXPECT_EQ(replies[2].status, 503) << "its route is closed";
  EXPECT_EQ(effects(), "k1=10");
}

TEST_F(GateBatch, RetriesAndReusedKeysAreAnswered) {
  const auto other = make_gate();  // another process, so that this one has not seen the keys
  ask(request("POST", "/payments", keyed("k2"), "10"), other->gate.port());
  ask(request("POST", "/payments", keyed("k3"), "10"), other->gate.port());
  const auto replies = ask_batch({{"k1"}, {"k2"}, {"k3", "11"}, {"k4"}});
  EXPECT_EQ(replies[0].status, 201);
  EXPECT_EQ(replies[1].header("idempotent-replayed"), "true");
  EXPECT_EQ(replies[2].status, 422);
  EXPECT_EQ(replies[3].status, 201);
  EXPECT_EQ(transactions(), "k2 k3 k1+k4");
}

// It may not be on the disk yet.
TEST_F(GateBatch, AKeyThatAWorkerCompletedIsAnsweredAlone) {
  const auto other = make_gate();
  ask(request("POST", "/payments", keyed("k2"), "10"), other->gate.port());
  database.run("UPDATE hapax.idempotency_keys SET group_id = 'a worker' WHERE key = 'k2'");
  const auto replies = ask_batch({{"k1"}, {"k2"}, {"k3"}});
  for (const Reply& reply : replies) EXPECT_EQ(reply.status, 201) << reply.body;
  EXPECT_EQ(replies[1].header("idempotent-replayed"), "true");
  EXPECT_EQ(transactions(), "k2 k1+k3");
  EXPECT_EQ(database.value("SELECT duplicates FROM hapax.idempotency_keys WHERE key = 'k2'"), "1");
}

TEST_F(GateBatch, AClientThatHasGoneHarmsNoOther) {
  auto clients = send_batch({{"k1"}, {"k2"}, {"k3"}});
  clients[1].reset();
  EXPECT_EQ(clients[0]->read().status, 201);
  EXPECT_EQ(clients[2]->read().status, 201);
  EXPECT_EQ(transactions(), "k1+k2+k3");
  EXPECT_EQ(post("k2").header("idempotent-replayed"), "true");
}

TEST_F(GateBatch, CommitSynchronously) {
  database.run(
      "CREATE TABLE commits (setting text); GRANT INSERT ON commits TO hapax_worker;"
      "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "INSERT INTO commits VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;"
      "CREATE CONSTRAINT TRIGGER last AFTER INSERT ON hapax.idempotency_keys "
      "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();"
      "ALTER ROLE hapax_worker SET synchronous_commit = off");
  ask_batch({{"k1"}, {"k2"}});
  EXPECT_EQ(transactions(), "k1+k2");
  EXPECT_EQ(database.value("SELECT DISTINCT setting FROM commits"), "on");
  database.run("ALTER ROLE hapax_worker RESET synchronous_commit");
}

using AcceptBatch = BatchCase<AcceptCase>;

TEST_F(AcceptBatch, EachBecomesItsOwnRecord) {
  const auto replies = ask_batch({{"k1", "1"}, {"k2", "2"}, {"k3", "3"}});
  for (const Reply& reply : replies) {
    EXPECT_EQ(reply.status, 202) << reply.body;
    EXPECT_EQ(reply.header("idempotency-key-expires"), "");
  }
  EXPECT_EQ(record("convert_from(payload, 'UTF8'), group_id, idempotency_key"),
            "1|bookers|" + record_key("k1") + "\n2|bookers|" + record_key("k2") + "\n3|bookers|" +
                record_key("k3"));
  EXPECT_EQ(database.count("SELECT count(DISTINCT xmin::text) FROM hapax.outbox"), 1);
  EXPECT_EQ(database.value("SELECT min(expires_at) > now() + interval '50 years' FROM "
                           "hapax.idempotency_keys WHERE topic = '/payments'"),
            "t");
  work(book);
  for (const std::size_t i : {0U, 1U, 2U}) {
    const auto shown = nlohmann::json::parse(look(replies[i].header("location")).body);
    EXPECT_EQ(shown.at("status"), "completed");
  }
  EXPECT_EQ(database.value("SELECT string_agg(note, ' ' ORDER BY id) FROM effects"), "1 2 3");
}

}  // namespace
}  // namespace hapax::gate
