// The table of failures: phase and SQLSTATE, or exception, to meaning.
#include "store/fault.hpp"

#include <gtest/gtest.h>

#include <pqxx/pqxx>

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

TEST(Fault, MeansWhatItsPhaseSays) {
  using enum Phase;
  using enum FailureClass;
  const Case cases[] = {
      {claim, sql("42P01"), halt},
      {handler, sql("42P01"), attempt},
      {complete, sql("42P01"), halt},
      {account, sql("42P01"), halt},
      {claim, sql("55P03"), busy},
      {handler, sql("55P03"), attempt},
      {claim, sql("57014"), busy},
      {handler, sql("57014"), attempt},
      {claim, sql("25006"), outage},
      {handler, sql("25006"), transaction_ended},
      {complete, sql("25006"), transaction_ended},
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
      {complete, other(), halt},
      {complete, {Fault::Kind::in_doubt, "", ""}, in_doubt},
  };
  for (const Case& c : cases)
    EXPECT_EQ(name_of(classify(c.phase, c.fault)), std::string(name_of(c.meaning)))
        << "phase " << static_cast<int>(c.phase) << " state " << c.fault.sqlstate;
}

TEST(Fault, SaysNothingAboutTheMessageWhereItIsPostgresOwn) {
  for (const Phase phase : {Phase::claim, Phase::handler, Phase::complete, Phase::account}) {
    for (const char* state : {"40001", "40P01"})
      EXPECT_EQ(classify(phase, sql(state)), FailureClass::again) << state;
    for (const char* state : {"08006", "57P01", "57P02", "57P03", "53100", "53300", "58030"})
      EXPECT_EQ(classify(phase, sql(state)), FailureClass::outage) << state;
    for (const char* state : {"HX001", "HX002"})
      EXPECT_EQ(classify(phase, sql(state)), FailureClass::transaction_ended) << state;
    EXPECT_EQ(classify(phase, sql("40003")), FailureClass::in_doubt);
  }
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

}  // namespace
}  // namespace hapax::store
