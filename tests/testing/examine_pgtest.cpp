// The test kit passes a handler that is right, and catches each that is not.
#include <gmock/gmock.h>

#include <algorithm>
#include <pqxx/pqxx>
#include <set>

#include "kit_case.hpp"

namespace kit {
namespace {

using hapax::testing::NotExactlyOnce;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The report of what is wrong; empty if the handler passes.
std::string verdict(const Body& body) {
  Harness harness(factory(body), ledger());
  try {
    harness.expect_exactly_once(payment());
  } catch (const NotExactlyOnce& error) {
    return error.what();
  }
  return "";
}

TEST(Examine, PassesAHandlerThatWritesThroughTheContextOnly) {
  Harness harness(factory(book), ledger());
  harness.deliver(payment("before", "1"));
  const Report report = harness.examine(payment());
  EXPECT_TRUE(report.passed()) << report;
  EXPECT_THAT(report.effects, ElementsAre("public.entries", "public.notes", "public.payments"));
  EXPECT_THAT(report.varying, IsEmpty());
  EXPECT_EQ(payments(harness), "before=1 p1=10");
  EXPECT_EQ(harness.deliver(payment()).result, Result::duplicate);
}

// A producer that sends it again sends another message.
TEST(Examine, ByPositionPassesAHandlerThatIsRightAndKeepsNoResult) {
  Options options = ledger();
  options.route["key"] = "position";
  const auto passed = [&](const Body& body) {
    Harness harness(factory(body), options);
    return harness.examine(payment()).passed();
  };
  EXPECT_TRUE(passed(book));
  EXPECT_TRUE(passed([](const Message&, Context&) { throw hapax::Reject("no"); }));
  Harness harness(factory([](const Message&, Context& context) {
                    context.result({{"status", "booked"}});
                  }),
                  options);
  EXPECT_THAT(harness.deliver(payment()).detail, HasSubstr("keeps no results"));
}

TEST(Examine, EveryWayIsReallyGone) {
  Harness harness(factory(book), ledger());
  const Report report = harness.examine(payment());
  std::vector<std::string> names;
  for (const Report::Way& way : report.ways) names.push_back(way.name);
  EXPECT_THAT(names,
              ElementsAre("delivered once", "then delivered again",
                          "then to a worker that was restarted", "then sent again by the producer",
                          "delivered once, in the same process, to a database that was put back",
                          "delivered to 4 workers at once",
                          "the worker dies before the handler runs, then it is delivered again",
                          "the worker dies after the handler, before COMMIT, then it is delivered "
                          "again",
                          "the worker dies after COMMIT, then it is delivered again",
                          "PostgreSQL answers 40001 to statement 1, then it is tried again",
                          "PostgreSQL answers 40001 to statement 2, then it is tried again",
                          "PostgreSQL answers 40P01 to COMMIT, then it is tried again",
                          "the connection is lost at statement 2, then it is tried again",
                          "PostgreSQL answers 23505 to COMMIT, then it is tried again",
                          "the connection is lost at COMMIT, then it is tried again",
                          "the session afterwards"));
}

// A rolled-back run leaves a gap in the sequence, so that the next one draws another number.
TEST(Examine, TakesANumberOfASequenceInTheResultAndNoOtherThatVaries) {
  const auto answering = [](bool counts_runs) {
    return [counts_runs, runs = 0](const Message& message, Context& context) mutable {
      ++runs;
      const auto rows = context.sql("INSERT INTO entries (id) VALUES ($1) RETURNING number",
                                    *message.header("id"));
      context.result({{"entry", {rows[0][0].as<std::int64_t>()}},
                      {"amount", *message.payload()},
                      {"run", counts_runs ? 1000 + runs : 0}});
    };
  };
  EXPECT_EQ(verdict(answering(false)), "");
  EXPECT_THAT(verdict(answering(true)), HasSubstr("idempotency_keys"));
}

TEST(Examine, NamesColumnsThatVaryAndComparesTheRest) {
  Harness harness(factory([](const Message& message, Context& context) {
                    context.sql("INSERT INTO payments VALUES ($1, 1, clock_timestamp())",
                                *message.header("id"));
                  }),
                  ledger());
  const Report report = harness.examine(payment());
  EXPECT_TRUE(report.passed()) << report;
  EXPECT_THAT(report.varying, ElementsAre("public.payments.booked_at"));
}

TEST(Examine, CatchesAHandlerThatWritesThroughAConnectionOfItsOwn) {
  std::string url;
  Harness harness(
      factory([&url](const Message& message, Context& context) {
        pqxx::connection own(url);
        pqxx::work work(own);
        work.exec("SET TRANSACTION READ WRITE");
        work.exec("INSERT INTO payments VALUES ('" + std::string(*message.header("id")) + "', 10)");
        work.commit();
        context.write("INSERT INTO entries (id) VALUES ('audit')");
      }),
      ledger());
  url = harness.url();
  const std::string report = harness.examine(payment()).text();
  EXPECT_THAT(report, HasSubstr("not take effect exactly once"));
  EXPECT_THAT(report, AnyOf(HasSubstr("public.payments has 1 row too many"),
                            HasSubstr("connection of its own")));
}

TEST(Examine, CatchesAConnectionThatTheHandlerKeeps) {
  std::string url;
  std::unique_ptr<pqxx::connection> own;
  Harness harness(factory([&](const Message& message, Context& context) {
                    if (!own) own = std::make_unique<pqxx::connection>(url);
                    book(message, context);
                  }),
                  ledger());
  url = harness.url();
  EXPECT_THAT(harness.examine(payment()).text(),
              HasSubstr("the handler holds 1 connection of its own to the database"));
}

TEST(Examine, CatchesAHandlerThatRemembersInMemoryWhatItHasDone) {
  static std::set<std::string> done;
  done.clear();
  EXPECT_THAT(verdict([](const Message& message, Context& context) {
                if (done.insert(std::string(*message.header("id"))).second) book(message, context);
              }),
              AllOf(HasSubstr("as if it depended on memory, time or chance"),
                    HasSubstr("public.payments has 1 row missing"),
                    HasSubstr("WRONG   PostgreSQL answers 40P01 to COMMIT")));
}

// A member, so each worker begins afresh: only a retry on the same instance tells.
TEST(Examine, CatchesAHandlerThatCollectsRowsOverItsRuns) {
  const std::string text = verdict(
      [rows = std::vector<std::string>()](const Message& message, Context& context) mutable {
        rows.emplace_back(*message.header("id"));
        for (const std::string& row : rows)
          context.sql("INSERT INTO payments VALUES ($1, 10)", row);
      });
  EXPECT_THAT(text, AllOf(HasSubstr("public.payments has 1 row too many"),
                          HasSubstr("WRONG   PostgreSQL answers 40001 to statement 1"),
                          HasSubstr("ok      the worker dies after the handler")));
}

TEST(Examine, CatchesAHandlerThatCommits) {
  EXPECT_THAT(verdict([](const Message& message, Context& context) {
                book(message, context);
                context.sql("COMMIT");
              }),
              AllOf(HasSubstr("it does not settle: halted (handler_ended_transaction"),
                    HasSubstr("COMMIT")));
}

TEST(Examine, CatchesAHandlerThatWritesByTurns) {
  static int run = 0;
  run = 0;
  EXPECT_THAT(verdict([](const Message& message, Context& context) {
                if (++run % 2 == 1) book(message, context);
              }),
              HasSubstr("public.payments has 1 row missing"));
}

TEST(Examine, CatchesAnEffectThatDependsOnTheRun) {
  static int run = 0;
  run = 0;
  EXPECT_THAT(verdict([](const Message& message, Context& context) {
                const int times = std::min(++run, 3);
                for (int i = 0; i < times; ++i) book(message, context);
              }),
              HasSubstr("rows too many"));
}

TEST(Examine, CatchesWhatAHandlerLeavesInItsSession) {
  EXPECT_THAT(verdict([](const Message& message, Context& context) {
                context.sql("SET search_path TO public, pg_temp");
                book(message, context);
              }),
              AllOf(HasSubstr("WRONG   the session afterwards"),
                    HasSubstr("leaves the setting search_path = 'public, pg_temp' behind")));
}

TEST(Examine, TellsNothingOfWhatAnEarlierMessageLeft) {
  Harness harness(factory([](const Message& message, Context& context) {
                    if (*message.header("id") == "leaks") context.sql("LISTEN news");
                    book(message, context);
                  }),
                  ledger());
  harness.deliver(payment("leaks"));
  EXPECT_THAT(harness.session_leaks(), ElementsAre("LISTEN news"));
  const Report report = harness.examine(payment());
  EXPECT_TRUE(report.passed()) << report;
}

TEST(Examine, CatchesAHandlerThatDiesOfARedelivery) {
  static bool ran = false;
  ran = false;
  EXPECT_THAT(verdict([](const Message& message, Context& context) {
                if (std::exchange(ran, true)) throw std::runtime_error("again?");
                book(message, context);
              }),
              HasSubstr("it ends as failed (attempts_exhausted: again?"));
}

// Books, and does `on_duplicate` for a duplicate.
class Replying final : public hapax::Handler {
 public:
  explicit Replying(Body on_duplicate) : on_duplicate_(std::move(on_duplicate)) {}
  void handle(const Message& message, Context& context) override { book(message, context); }
  bool wants_duplicates() const override { return true; }
  void on_duplicate(const Message& message, const hapax::StoredResult&, Context& context) override {
    on_duplicate_(message, context);
  }

 private:
  Body on_duplicate_;
};

Report examined(const Body& on_duplicate, const Options& options) {
  Harness harness({"booker", [&] { return std::make_unique<Replying>(on_duplicate); }, "1"},
                  options);
  return harness.examine(payment());
}

TEST(Examine, CatchesADuplicateThatIsBooked) {
  const std::string report = examined(book, ledger()).text();
  for (const char* const way :
       {"then delivered again", "then sent again by the producer", "delivered to 4 workers at once",
        "the worker dies after COMMIT, then it is delivered again"})
    EXPECT_THAT(report, HasSubstr(std::string("WRONG   ") + way));
  EXPECT_THAT(report, HasSubstr("Options::duplicate_tables"));
}

TEST(Examine, ADuplicateMayChangeTheTablesThatTheTestNamesAndNoOthers) {
  const Body reply = [](const Message&, Context& context) {
    context.write("INSERT INTO entries (id) VALUES ('reply')");
  };
  Options options = ledger();
  EXPECT_THAT(examined(reply, options).text(), HasSubstr("after on_duplicate public.entries has"));
  options.duplicate_tables = {"public.entries"};
  EXPECT_TRUE(examined(reply, options).passed()) << examined(reply, options);
  EXPECT_FALSE(examined(book, options).passed());
  options.duplicate_tables = {"entries"};
  EXPECT_THROW(examined(reply, options), std::runtime_error);
}

// And lines of `ok` for a message that failed would mislead.
TEST(Examine, WithoutAnEffectNothingIsProvedAndTheOtherWaysAreLeftOut) {
  EXPECT_EQ(verdict([](const Message&, Context&) { throw hapax::Reject("never"); }),
            "the message does not take effect exactly once:\n"
            "  WRONG   delivered once\n"
            "          - it does not complete, so it has no effect: failed (rejected: never, "
            "attempts: 1)\n"
            "  ok      the session afterwards\n");
  EXPECT_EQ(verdict([](const Message&, Context& context) { context.result(1); }),
            "the message does not take effect exactly once:\n"
            "  WRONG   delivered once\n"
            "          - it has no effect: it completes and changes no table, and publishes "
            "nothing\n"
            "  ok      the session afterwards\n");
}

TEST(Examine, PassesAMessageThatIsToBecomeADeadLetter) {
  Harness harness(factory([](const Message& message, Context& context) {
                    book(message, context);
                    throw hapax::Reject("never");
                  }),
                  ledger());
  const Report report = harness.examine(payment());
  EXPECT_TRUE(report.passed()) << report;
  EXPECT_EQ(report.once.result, Result::failed);
  EXPECT_THAT(report.effects, IsEmpty());
}

TEST(Examine, AKeyThatIsUsedUpProvesNothing) {
  Harness harness(factory(book), ledger());
  harness.deliver(payment());
  EXPECT_THAT(harness.examine(payment()).text(), HasSubstr("a key of its own"));
}

}  // namespace
}  // namespace kit
