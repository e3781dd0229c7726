// Two different messages at once: the test kit passes a handler that is right, and catches one that
// loses an update.
#include <gmock/gmock.h>

#include "kit_case.hpp"

namespace kit {
namespace {

using hapax::testing::NotExactlyOnce;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kSum = "UPDATE payments SET amount = $1 WHERE id = 'sum'";

long selected(Context& context, const std::string& how = "") {
  return context.sql("SELECT amount FROM payments WHERE id = 'sum'" + how)[0][0].as<long>();
}

long amount_of(const Message& message) { return std::stol(std::string(*message.payload())); }

// The report of what is wrong; empty if the handler passes.
std::string verdict_of_pair(const Body& body, const Record& second = payment("p2", "20")) {
  Harness harness(factory(body), ledger());
  harness.sql("INSERT INTO payments VALUES ('sum', 0)");
  try {
    harness.expect_no_lost_update(payment(), second);
  } catch (const NotExactlyOnce& error) {
    return error.what();
  }
  EXPECT_EQ(payments(harness), "sum=30") << "as after both";
  return "";
}

TEST(Pair, CatchesAHandlerThatSelectsAndThenWritesTheSum) {
  const auto now = [](const Message& message, Context& context) {
    context.sql(kSum, selected(context) + amount_of(message));
  };
  EXPECT_THAT(verdict_of_pair(now),
              AllOf(HasSubstr("ok      the second message, then the first"),
                    HasSubstr("WRONG   the second message, while the transaction of the first"),
                    HasSubstr("public.payments.amount is 20, not 30"),
                    HasSubstr("public.payments.amount is 10, not 30"),
                    HasSubstr("or select it FOR UPDATE")));
  const auto late = [](const Message& message, Context& context) {
    context.write(kSum, selected(context) + amount_of(message));
  };
  EXPECT_THAT(verdict_of_pair(late), HasSubstr("public.payments.amount is 10, not 30"));
}

TEST(Pair, PassesAHandlerThatLetsPostgresqlAddOrLocksTheRow) {
  EXPECT_EQ(verdict_of_pair([](const Message& message, Context& context) {
              context.write("UPDATE payments SET amount = amount + $1 WHERE id = 'sum'",
                            amount_of(message));
            }),
            "");
  EXPECT_EQ(verdict_of_pair([](const Message& message, Context& context) {
              context.write(kSum, selected(context, " FOR UPDATE") + amount_of(message));
            }),
            "");
  // The first one goes on before the second one tries again.
  EXPECT_EQ(verdict_of_pair([](const Message& message, Context& context) {
              context.write(kSum, selected(context, " FOR UPDATE NOWAIT") + amount_of(message));
            }),
            "");
}

// The second one is refused in either order, by what the first one has left.
TEST(Pair, EitherOrderIsRight) {
  Harness harness(factory([](const Message& message, Context& context) {
                    if (selected(context, " FOR UPDATE") > 0) throw hapax::Reject("taken");
                    context.write(kSum, amount_of(message));
                  }),
                  ledger());
  harness.sql("INSERT INTO payments VALUES ('sum', 0)");
  harness.expect_no_lost_update(payment(), payment("p2", "20"));
  EXPECT_EQ(payments(harness), "sum=10");
}

TEST(Pair, WhatProvesNothingIsTold) {
  const auto add = [](const Message& message, Context& context) {
    context.sql("UPDATE payments SET amount = amount + $1 WHERE id = 'sum'", amount_of(message));
  };
  EXPECT_THAT(verdict_of_pair(add, payment()), HasSubstr("both have one key"));
  EXPECT_THAT(verdict_of_pair([](const Message&, Context&) { throw hapax::Reject("never"); }),
              HasSubstr("it does not complete"));
  EXPECT_THAT(verdict_of_pair([](const Message&, Context&) {}), HasSubstr("it has no effect"));
}

}  // namespace
}  // namespace kit
