// The table of failures: phase and SQLSTATE, or exception, to meaning.
#include "store/fault.hpp"

#include <gmock/gmock.h>

#include <pqxx/pqxx>

#include "store/advice.hpp"

namespace hapax::store {
namespace {

struct Case {
  Phase phase;
  Fault fault;
  FailureClass meaning;
};

Fault sql(const char* state) { return {Fault::Kind::sql, state, ""}; }
Fault gone() { return {Fault::Kind::connection, "", ""}; }
Fault aborted() { return {Fault::Kind::aborted, "", ""}; }
Fault other() { return {Fault::Kind::other, "", ""}; }

TEST(Fault, MeansWhatItsPhaseTells) {
  using enum Phase;
  using enum FailureClass;
  const Case cases[] = {
      {claim, sql("42P01"), halt},
      {handler, sql("42P01"), refused},
      {handler, sql("42501"), refused},
      {handler, sql("58P01"), refused},
      {handler, sql("42P07"), attempt},
      {handler, sql("26000"), again_reconnected},
      {handler, sql("42P05"), again_reconnected},
      {complete, sql("42P01"), attempt},
      {complete, sql("58P01"), attempt},
      {complete, sql("BK001"), attempt},
      {complete, sql("54001"), attempt},
      {account, sql("42P01"), halt},
      {claim, sql("57P05"), outage},
      {handler, sql("57P05"), outage},
      {claim, sql("25P04"), outage},
      {claim, sql("55P03"), busy},
      {handler, sql("55P03"), attempt},
      {claim, sql("57014"), busy},
      {handler, sql("57014"), attempt},
      {claim, sql("25006"), outage},
      {handler, sql("25006"), attempt},
      {complete, sql("25006"), attempt},
      {complete, sql("23505"), attempt},
      {complete, sql("25P02"), attempt},
      {handler, sql("25P02"), attempt},
      {claim, sql("0A000"), again_reconnected},
      {handler, sql("0A000"), attempt},
      {claim, sql("XX000"), halt},
      {handler, sql("XX000"), attempt},
      {connect, sql("28P01"), outage},
      {claim, gone(), outage},
      {handler, gone(), outage},
      {complete, gone(), in_doubt},
      {account, gone(), outage},
      {handler, aborted(), attempt},
      {complete, aborted(), attempt},
      {claim, aborted(), halt},
      {handler, other(), attempt},
      {claim, other(), halt},
      {complete, other(), attempt},
      {complete, {Fault::Kind::in_doubt, "", ""}, in_doubt},
  };
  for (const Case& c : cases)
    EXPECT_EQ(name_of(classify(c.phase, c.fault)), std::string(name_of(c.meaning)))
        << "phase " << static_cast<int>(c.phase) << " state " << c.fault.sqlstate;
}

TEST(Fault, TellsNothingAboutTheMessageIfItIsPostgresOwn) {
  for (const Phase phase : {Phase::claim, Phase::handler, Phase::complete, Phase::account}) {
    for (const char* state : {"40001", "40P01"})
      EXPECT_EQ(classify(phase, sql(state)), FailureClass::again) << state;
    for (const char* state :
         {"08006", "57P01", "57P02", "57P03", "53100", "53300", "58030", "57P05", "25P03", "25P04"})
      EXPECT_EQ(classify(phase, sql(state)), FailureClass::outage) << state;
    for (const char* state : {"HX001", "HX002"})
      EXPECT_EQ(classify(phase, sql(state)), FailureClass::transaction_ended) << state;
    EXPECT_EQ(classify(phase, sql("40003")), FailureClass::in_doubt);
  }
}

TEST(Fault, OfALostSessionIsOneThatANewSessionMayNotMeet) {
  for (const char* state : {"", "57P01", "57P02", "57P03", "57P05"})
    EXPECT_TRUE(may_be_a_lost_session(state)) << state;
  for (const char* state : {"08006", "57014", "53300", "58030", "25006", "42501"})
    EXPECT_FALSE(may_be_a_lost_session(state)) << state;
}

TEST(Fault, OfATimeOutIsNotToldAsARightThatIsMissing) {
  for (const char* state : {"42501", "42P01"})
    EXPECT_THAT(advice_on(state), testing::HasSubstr("have its rights?")) << state;
  for (const char* state : {"57014", "55P03", "40001", "22000", ""})
    EXPECT_THAT(advice_on(state), testing::Not(testing::HasSubstr("rights"))) << state;
}

template <class Exception>
Fault read(const Exception& exception) {
  return fault_of(std::make_exception_ptr(exception));
}

// libpqxx 7 wants the query too.
template <class Exception>
Fault read_rollback() {
  if constexpr (std::is_constructible_v<Exception, const char*>) {
    return read(Exception("x"));
  } else {
    return read(Exception("x", "q"));
  }
}

TEST(Fault, ReadsTheExceptionsThatCarryNoSqlState) {
  EXPECT_EQ(read_rollback<pqxx::deadlock_detected>().sqlstate, "40P01");
  EXPECT_EQ(read_rollback<pqxx::serialization_failure>().sqlstate, "40001");
  EXPECT_EQ(read_rollback<pqxx::statement_completion_unknown>().sqlstate, "40003");
  EXPECT_EQ(read(pqxx::in_doubt_error("x")).kind, Fault::Kind::in_doubt);
  EXPECT_EQ(read(pqxx::broken_connection("x")).kind, Fault::Kind::connection);
  EXPECT_EQ(read(pqxx::usage_error("x")).kind, Fault::Kind::aborted);
  EXPECT_EQ(read(std::runtime_error("x")).kind, Fault::Kind::other);
  EXPECT_EQ(read(42).kind, Fault::Kind::other);
  EXPECT_EQ(read(pqxx::unique_violation("x", "q", "23505")).sqlstate, "23505");
}

struct Silent : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

TEST(Fault, IsReadFromAnExceptionThatHasNoText) {
  EXPECT_EQ(read(Silent()), (Fault{Fault::Kind::other, "", "an exception whose what() is null"}));
  EXPECT_EQ(text_of(Silent()), "an exception whose what() is null");
}

TEST(Fault, OfATextThatDoesNotPrepareIsToldWithoutTheNameThatItHasHere) {
  EXPECT_EQ(read(pqxx::sql_error("Failure during '[PREPARE hapax_user_1]': ERROR:  no table", "q",
                                 "42P01"))
                .text,
            "ERROR:  no table");
}

// Read as the handler's own, a deadlock that it wrapped or copied would cost an attempt.
TEST(Fault, OfPostgresIsOneThoughTheHandlerTurnsItIntoAnother) {
  const DatabaseError deadlock({Fault::Kind::sql, "40P01", "deadlock"}, "UPDATE");
  EXPECT_EQ(read(SqlError(deadlock)).sqlstate, "40P01");
  EXPECT_EQ(read(SqlError("gone", "", "UPDATE")).kind, Fault::Kind::connection);
  const auto wrapped = [](const auto& inner) {
    try {
      try {
        throw inner;
      } catch (...) {
        std::throw_with_nested(std::runtime_error("while booking"));
      }
    } catch (const std::exception& error) {
      EXPECT_EQ(text_of(error), "while booking: " + std::string(inner.what()));
      return fault_of(std::current_exception());
    }
  };
  EXPECT_EQ(wrapped(deadlock), (Fault{Fault::Kind::sql, "40P01", "while booking: deadlock"}));
  EXPECT_EQ(wrapped(std::out_of_range("no rate")),
            (Fault{Fault::Kind::other, "", "while booking: no rate"}));
}

}  // namespace
}  // namespace hapax::store
