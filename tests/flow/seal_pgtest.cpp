// The seal under attack: what a handler may try with the transaction it was lent, and what is
// committed then. The table "Tried as the worker role" of the guarantees.
#include "flow/flow_case.hpp"

#include <pqxx/pqxx>

namespace hapax::flow {
namespace {

class Seal : public FlowCase {
 protected:
  // Books, then runs each text; errors are swallowed, as the worst handler would.
  Outcome attack(const std::vector<std::string>& texts, const Sent& sent = {}) {
    return process(sent, [&](const Message& message, Context& context) {
      book(message, context);
      for (const std::string& text : texts) swallow([&] { context.pqxx().exec(text); });
    });
  }

  static void swallow(const std::function<void()>& action) {
    try {
      action();
    } catch (const std::exception&) {
    }
  }

  void expect_halted_with_nothing(const Outcome& outcome) {
    EXPECT_EQ(outcome.result, Result::halt_route) << outcome.detail;
    EXPECT_EQ(outcome.reason, "handler_ended_transaction");
    EXPECT_NE(outcome.detail.find("booker"), std::string::npos);
    expect_nothing();
  }

  void expect_nothing() {
    EXPECT_EQ(effects(), "");
    EXPECT_EQ(key_row(), "");
    EXPECT_EQ(count("hapax.dead_letters"), 0);
    // And the next message on this lane finds a session that works.
    EXPECT_EQ(process({.key = "next", .offset = 1}).result, Result::completed);
    EXPECT_EQ(effects(), "next=10");
  }
};

constexpr const char* kWrite = "INSERT INTO effects (key, note) VALUES ('stray', '1')";

TEST_F(Seal, RefusesAHandlersCommit) {
  expect_halted_with_nothing(attack({"COMMIT"}));
  EXPECT_EQ(count("hapax.attempts"), 0);
}

TEST_F(Seal, RefusesAHandlersCommitThroughSql) {
  expect_halted_with_nothing(process({}, [](const Message& message, Context& context) {
    book(message, context);
    context.sql("COMMIT");
  }));
}

TEST_F(Seal, RefusesAHandlersDeferredCommit) {
  const Outcome outcome = process({}, [](const Message& message, Context& context) {
    book(message, context);
    context.write("COMMIT");
  });
  // PostgreSQL ends the connection at the second COMMIT of one text.
  EXPECT_FALSE(is_settled(outcome.result)) << outcome.detail;
  expect_nothing();
}

TEST_F(Seal, EndsWithAHandlerThatDefersACommitEachTime) {
  for (const char* text : {"COMMIT", "ROLLBACK", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN"}) {
    const Outcome outcome = settle({.key = text}, [&](const Message& message, Context& context) {
      book(message, context);
      context.write(text);
    });
    EXPECT_TRUE(outcome.result == Result::halt_route || outcome.reason == "attempts_exhausted")
        << text << outcome.reason << outcome.detail;
    EXPECT_EQ(effects(), "") << text;
  }
}

TEST_F(Seal, RefusesACommitThatIsFollowedByAWrite) {
  expect_halted_with_nothing(attack({"COMMIT", kWrite}));
}

TEST_F(Seal, RefusesCommitAndChain) { expect_halted_with_nothing(attack({"COMMIT AND CHAIN"})); }

TEST_F(Seal, RefusesCommitAndChainAndWrite) {
  expect_halted_with_nothing(attack({"COMMIT AND CHAIN", kWrite}));
}

TEST_F(Seal, RefusesARollback) { expect_halted_with_nothing(attack({"ROLLBACK"})); }

// Outside the transaction the worker role may not write at all: 25006, not a commit of its own.
TEST_F(Seal, RefusesARollbackThatIsFollowedByAWrite) {
  expect_halted_with_nothing(attack({"ROLLBACK", kWrite}));
}

TEST_F(Seal, RefusesARollbackThatIsFollowedByADeferredWrite) {
  expect_halted_with_nothing(process({}, [](const Message&, Context& context) {
    context.pqxx().exec("ROLLBACK");
    context.write(kWrite);
  }));
}

TEST_F(Seal, RefusesRollbackAndChainAndAWrite) {
  expect_halted_with_nothing(attack({"ROLLBACK AND CHAIN", kWrite}));
}

TEST_F(Seal, RefusesATransactionBegunAfterARollback) {
  expect_halted_with_nothing(attack({"ROLLBACK", "BEGIN READ WRITE", kWrite}));
}

TEST_F(Seal, RefusesAClaimThatWasRolledBackToASavepointBefore) {
  // There is no savepoint before the claim; a handler that makes one cannot go behind it.
  EXPECT_EQ(attack({"SAVEPOINT here", "ROLLBACK TO here"}).result, Result::completed);
}

// Seen and not prevented: the effect stands without a key. The halt keeps it from being doubled.
TEST_F(Seal, HaltsIfAHandlerCommittedAnEffectInATransactionOfItsOwn) {
  const Outcome outcome = attack({"ROLLBACK", "BEGIN READ WRITE", kWrite, "COMMIT"});
  EXPECT_EQ(outcome.result, Result::halt_route);
  EXPECT_EQ(effects(), "stray=1");
  EXPECT_EQ(key_row(), "");
}

// The seal is a prepared statement, and so it cannot look. Run again, the effect would be doubled.
TEST_F(Seal, HaltsIfAHandlerCommittedAnEffectAndDroppedOurPreparedStatements) {
  for (const std::vector<const char*>& texts : std::vector<std::vector<const char*>>{
           {"DEALLOCATE ALL", "ROLLBACK", "BEGIN READ WRITE", kWrite, "COMMIT"},
           {"ROLLBACK", "BEGIN READ WRITE", kWrite, "COMMIT", "DISCARD ALL"}}) {
    database.run("TRUNCATE effects");
    const Outcome outcome = settle({}, [&](const Message&, Context& context) {
      for (const char* const text : texts) context.pqxx().exec(text);
    });
    EXPECT_EQ(outcome.result, Result::halt_route) << outcome.reason;
    EXPECT_EQ(effects(), "stray=1");
    EXPECT_EQ(key_row(), "");
  }
}

// Counted as an attempt, each further one would double the effect that stands alone.
TEST_F(Seal, HaltsIfAHandlerEndedItsTransactionAndThenThrew) {
  const Body ends[] = {
      [](const Message&, Context&) { throw Reject("no"); },
      [](const Message&, Context&) { throw Retry("later"); },
      [](const Message&, Context&) { throw std::runtime_error("no"); },
      [](const Message&, Context& context) { context.pqxx().exec("SELECT 1 / 0"); },
  };
  int offset = 0;
  for (const Body& end : ends) {
    const Outcome outcome =
        process({.offset = ++offset}, [&](const Message& message, Context& context) {
          for (const char* text : {"ROLLBACK", "BEGIN READ WRITE", kWrite, "COMMIT"})
            context.pqxx().exec(text);
          end(message, context);
        });
    EXPECT_EQ(outcome.result, Result::halt_route) << offset << outcome.detail;
    EXPECT_EQ(count("effects"), offset);
  }
  EXPECT_EQ(count("hapax.attempts"), 0);
  EXPECT_EQ(count("hapax.dead_letters"), 0);
}

TEST_F(Seal, LeavesNothingOfAHandlerThatMakesItsTransactionReadOnly) {
  const Outcome outcome = attack({"SET TRANSACTION READ ONLY"});
  // The seal writes nothing, so a claim and effect made before it are whole.
  if (outcome.result == Result::completed) {
    EXPECT_EQ(effects(), "k1=10");
    EXPECT_EQ(key_row(), "completed@0");
  } else {
    expect_nothing();
  }
}

TEST_F(Seal, LeavesNothingOfAHandlerThatDiscardsAll) {
  EXPECT_EQ(attack({"DISCARD ALL"}).result, Result::retry);
  expect_nothing();
}

TEST_F(Seal, HaltsAtAHandlerThatForgetsTheGate) {
  expect_halted_with_nothing(attack({"RESET ALL"}));
}

TEST_F(Seal, HaltsAtAHandlerThatChecksAllConstraintsNow) {
  const Outcome swallowed = attack({"SET CONSTRAINTS ALL IMMEDIATE"});
  EXPECT_NE(swallowed.result, Result::completed);
  const Outcome passed = process({}, [](const Message& message, Context& context) {
    book(message, context);
    context.sql("SET CONSTRAINTS ALL IMMEDIATE");
  });
  expect_halted_with_nothing(passed);
}

// As at COMMIT, though hapax lets no such commit through.
TEST_F(Seal, HaltsAtAHandlerThatEndsItsTransactionThroughLibpqxx) {
  for (const bool aborts : {false, true})
    for (const bool throws : {false, true}) {
      expect_halted_with_nothing(process({}, [&](const Message& message, Context& context) {
        book(message, context);
        aborts ? context.pqxx().abort() : context.pqxx().commit();
        if (throws) throw std::runtime_error("after it");
      }));
      database.run("TRUNCATE effects, hapax.idempotency_keys");
    }
}

TEST_F(Seal, HoldsForATakenOverKeyToo) {
  process({.key = "taken", .offset = 5}, [](const Message&, Context&) { throw Reject("no"); });
  for (const auto& texts : std::vector<std::vector<std::string>>{{"COMMIT"},
                                                                 {"COMMIT AND CHAIN"},
                                                                 {"ROLLBACK", kWrite},
                                                                 {"ROLLBACK AND CHAIN", kWrite}}) {
    const Outcome outcome = attack(texts, {.key = "taken", .offset = 6});
    EXPECT_EQ(outcome.result, Result::halt_route) << texts[0];
    EXPECT_EQ(effects(), "") << texts[0];
    EXPECT_EQ(key_row("taken"), "failed@5") << texts[0];
  }
}

TEST_F(Seal, SurvivesAHandlerThatDropsOurPreparedStatements) {
  for (int i = 0; i < 3; ++i) {
    const Sent sent{.key = std::to_string(i), .offset = i};
    const Outcome outcome = settle(sent, [](const Message& message, Context& context) {
      book(message, context);
      context.pqxx().exec("DEALLOCATE ALL");
    });
    EXPECT_EQ(outcome.result, Result::completed) << outcome.detail;
  }
  EXPECT_EQ(effects(), "0=10 1=10 2=10");
}

}  // namespace
}  // namespace hapax::flow
