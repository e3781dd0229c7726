// The test kit on handlers that call to the outside: it passes those that are right, and catches
// each that repeats blindly.
#include <gmock/gmock.h>

#include <pqxx/pqxx>
#include <set>

#include "hapax/outside.hpp"
#include "kit_case.hpp"

namespace kit {
namespace {

using hapax::Call;
using hapax::testing::NotExactlyOnce;
using hapax::testing::OtherSide;
using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

struct Gateway {
  std::set<std::string> keys;
  int charges = 0;

  json charge(const std::string& key) {
    if (keys.insert(key).second) ++charges;
    return {{"charge", key.substr(0, 8)}};
  }
  OtherSide side() {
    return {[this] { return charges; },
            [this] {
              keys.clear();
              charges = 0;
            }};
  }
};

// As it should be; each test breaks one part of it.
struct Parts {
  std::function<json(Gateway&, const Call&)> call = [](Gateway& gateway, const Call& about) {
    return gateway.charge(std::string(about.key()));
  };
  std::function<hapax::Verdict(Gateway&, const Call&)> reconcile = [](Gateway& gateway,
                                                                      const Call& about) {
    const bool done = gateway.keys.contains(std::string(about.key()));
    return done ? hapax::Verdict::done({{"charge", about.key().substr(0, 8)}})
                : hapax::Verdict::not_done();
  };
  Body book = [](const Message& message, Context& context) {
    context.sql("INSERT INTO payments VALUES ($1, 1)", *message.header("id"));
  };
};

class Charges final : public hapax::OutsideHandler {
 public:
  Charges(Gateway& gateway, Parts parts) : gateway_(gateway), parts_(std::move(parts)) {}
  json call(const Message& /*message*/, const Call& call) override {
    return parts_.call(gateway_, call);
  }
  hapax::Verdict reconcile(const Message& /*message*/, const Call& call) override {
    return parts_.reconcile(gateway_, call);
  }
  void book(const Message& message, const json& /*answer*/, Context& context) override {
    parts_.book(message, context);
  }

 private:
  Gateway& gateway_;
  Parts parts_;
};

hapax::HandlerFactory charges(Gateway& gateway, const Parts& parts = {}) {
  hapax::HandlerFactory factory{.name = "charges", .make = {}};
  factory.make_outside = [&gateway, parts] { return std::make_unique<Charges>(gateway, parts); };
  return factory;
}

Options declared(const json& outside) {
  Options options = ledger();
  options.route["outside"] = outside;
  return options;
}

const json kIdempotent = {{"repeat", "idempotent"}, {"remembers", "72h"}};
const json kQueryable = {{"repeat", "queryable"}};
const json kNever = {{"repeat", "never"}};

std::string problems_of(const hapax::HandlerFactory& handler, const json& outside,
                        Gateway& gateway) {
  Harness harness(handler, declared(outside));
  try {
    harness.expect_no_blind_repeat(payment(), gateway.side());
  } catch (const NotExactlyOnce& wrong) {
    return wrong.what();
  }
  return {};
}

TEST(KitOfCalls, PassesAHandlerThatKeepsItsDeclaration) {
  for (const json& outside : {kIdempotent, kQueryable, kNever}) {
    Gateway gateway;
    Harness harness(charges(gateway), declared(outside));
    const Report report = harness.examine_calls(payment(), gateway.side());
    EXPECT_TRUE(report.passed()) << outside << report.text();
    EXPECT_EQ(report.once.calls, 1);
    EXPECT_EQ(gateway.charges, 1);
    EXPECT_EQ(payments(harness), "p1=1") << "it is as after one delivery";
    EXPECT_NO_THROW(harness.expect_no_blind_repeat(payment("p2"), gateway.side()));
  }
}

TEST(KitOfCalls, CatchesAKeyThatIsNotHandedOn) {
  Gateway gateway;
  Parts parts;
  parts.call = [](Gateway& to, const Call&) { return to.charge(std::to_string(to.charges)); };
  const std::string found = problems_of(charges(gateway, parts), kIdempotent, gateway);
  EXPECT_THAT(found, HasSubstr("WRONG   the process dies in the call"));
  EXPECT_THAT(found, HasSubstr("WRONG   the connection breaks before the answer comes"));
  EXPECT_THAT(found, HasSubstr("has had 2 effects, not 1: does `call` hand on call.key()"));
  EXPECT_THAT(found, HasSubstr("ok      the process dies before the booking"));
  EXPECT_THAT(problems_of(charges(gateway, parts), kNever, gateway), IsEmpty());
}

TEST(KitOfCalls, CatchesAReconcileThatFindsNothing) {
  Gateway gateway;
  Parts parts;
  parts.call = [](Gateway& to, const Call&) { return to.charge(std::to_string(to.charges)); };
  parts.reconcile = [](Gateway&, const Call&) { return hapax::Verdict::not_done(); };
  const std::string found = problems_of(charges(gateway, parts), kQueryable, gateway);
  EXPECT_THAT(found, HasSubstr("WRONG   the process dies in the call"));
  EXPECT_THAT(found, HasSubstr("WRONG   the process dies in the call, and the other side cannot"));
  EXPECT_THAT(found, HasSubstr("does `reconcile` find what `call` has done?"));
}

TEST(KitOfCalls, CatchesABookingThatRemembersAnEarlierOne) {
  Gateway gateway;
  Parts parts;
  parts.book = [booked = std::make_shared<int>(0)](const Message& message, Context& context) {
    for (int i = ++*booked; i > 0; --i)
      context.sql("INSERT INTO payments VALUES ($1, 1)", *message.header("id"));
  };
  EXPECT_THAT(problems_of(charges(gateway, parts), kIdempotent, gateway),
              HasSubstr("chance: public.payments has 1 row too many"));
}

TEST(KitOfCalls, HoldsARefusalAgainstARefusal) {
  Gateway gateway;
  Parts parts;
  parts.call = [](Gateway&, const Call&) -> json { throw hapax::Reject("no such card"); };
  Harness harness(charges(gateway, parts), declared(kIdempotent));
  const Report report = harness.examine_calls(payment(), gateway.side());
  EXPECT_TRUE(report.passed()) << report.text();
  EXPECT_EQ(report.once.reason, "rejected");
  EXPECT_THAT(
      problems_of(charges(gateway, parts), kIdempotent, gateway),
      HasSubstr("it does not complete, so it has no effect: failed (rejected: no such card"));
}

TEST(KitOfCalls, WantsAnEffectAtTheOtherSide) {
  Gateway gateway;
  Parts parts;
  parts.call = [](Gateway&, const Call&) { return json::object(); };
  EXPECT_THAT(problems_of(charges(gateway, parts), kIdempotent, gateway),
              HasSubstr("it has no effect: the other side has had none"));
}

// The delays of the retries are longer than the other side remembers.
TEST(KitOfCalls, DeliversAsAWorkerDoes) {
  Gateway gateway;
  Parts parts;
  int runs = 0;
  parts.call = [&runs](Gateway& to, const Call& call) {
    if (++runs < 3) throw hapax::NotCalled("no connection");
    return to.charge(std::string(call.key()));
  };
  Harness harness(charges(gateway, parts), declared(kIdempotent));
  const Outcome outcome = harness.deliver(payment());
  EXPECT_EQ(outcome.result, Result::completed);
  EXPECT_EQ(outcome.calls, 3);
  EXPECT_EQ(outcome.runs, 1) << "it was booked once";
  EXPECT_EQ(harness.deliver(payment()).result, Result::duplicate);

  parts.call = [](Gateway&, const Call&) -> json { throw std::runtime_error("time-out"); };
  Harness forgetful(charges(gateway, parts),
                    declared({{"repeat", "idempotent"}, {"remembers", "30m"}}));
  const Outcome lost = forgetful.deliver(payment());
  EXPECT_EQ(lost.reason, "outcome_unknown");
  EXPECT_EQ(lost.calls, 1) << "the first retry is an hour later";
}

// The call takes longer than a hundred tries of the other workers.
TEST(KitOfCalls, OfWorkersAtOnceTheOthersWaitForTheCall) {
  Gateway gateway;
  std::string url;
  Parts parts;
  parts.call = [&url](Gateway& to, const Call& call) {
    pqxx::connection other(url);
    pqxx::nontransaction work(other);
    for (int i = 0; i < 15000; ++i) work.exec("SELECT 1");
    return to.charge(std::string(call.key()));
  };
  Harness harness(charges(gateway, parts), declared(kIdempotent));
  url = harness.url();
  std::vector<Result> results;
  for (const Outcome& outcome : harness.deliver_in_parallel(payment(), 3))
    results.push_back(outcome.result);
  EXPECT_THAT(results, testing::UnorderedElementsAre(Result::completed, Result::duplicate,
                                                     Result::duplicate));
  EXPECT_EQ(gateway.charges, 1);
}

TEST(KitOfCalls, AnErrorInOneOfSeveralWorkersIsThrown) {
  Gateway gateway;
  std::string url;
  Parts parts;
  parts.call = [&url](Gateway& to, const Call& call) {
    pqxx::connection other(url);
    pqxx::nontransaction(other).exec(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND "
        "datname = current_database() AND usename = current_user");
    return to.charge(std::string(call.key()));
  };
  Harness harness(charges(gateway, parts), declared(kIdempotent));
  url = harness.url();
  EXPECT_THROW(harness.deliver_in_parallel(payment(), 2), std::runtime_error);
}

TEST(KitOfCalls, ACrashThatTheDoubleDoesNotSeeIsRefused) {
  Gateway gateway;
  Harness harness(charges(gateway), declared(kIdempotent));
  EXPECT_THROW(harness.crash_at(hapax::testing::CrashPoint::handled, payment()), std::logic_error);
}

TEST(KitOfCalls, TellsWhichExaminationFitsTheHandler) {
  Gateway gateway;
  Harness outside(charges(gateway), declared(kNever));
  EXPECT_THROW(outside.expect_exactly_once(payment()), std::logic_error);
  Harness inside(factory(book), ledger());
  EXPECT_THROW(inside.expect_no_blind_repeat(payment(), gateway.side()), std::logic_error);
  try {
    const Harness undeclared(charges(gateway), ledger());
    FAIL() << "no declaration";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("Add \"outside\""));
  }
}

// Two charges for one message. The gateway of `queryable` and `never` keeps no keys.
Parts in_two_steps(bool keeps_keys) {
  const auto charge = [keeps_keys](Gateway& gateway, std::string_view key) {
    if (keeps_keys) return gateway.charge(std::string(key));
    gateway.keys.emplace(key);
    ++gateway.charges;
    return json{{"charge", key.substr(0, 8)}};
  };
  Parts parts;
  parts.call = [charge](Gateway& gateway, const Call& call) {
    json answers;
    for (const char* const step : {"charge", "fee"})
      answers[step] = call.step(step, [&](std::string_view key) { return charge(gateway, key); });
    return answers;
  };
  parts.reconcile = [](Gateway& gateway, const Call& call) {
    for (const char* const step : {"charge", "fee"})
      if (gateway.keys.contains(call.step_key(step)))
        call.step(step, [](std::string_view key) { return json{{"charge", key.substr(0, 8)}}; });
    const auto charged = call.kept("charge"), fee = call.kept("fee");
    return charged && fee ? hapax::Verdict::done({{"charge", *charged}, {"fee", *fee}})
                          : hapax::Verdict::not_done();
  };
  return parts;
}

TEST(KitOfSteps, PassesAHandlerThatRepeatsNoStep) {
  for (const json& outside : {kIdempotent, kQueryable, kNever}) {
    Gateway gateway;
    Harness harness(charges(gateway, in_two_steps(outside == kIdempotent)), declared(outside));
    const Report report = harness.examine_calls(payment(), gateway.side());
    EXPECT_TRUE(report.passed()) << outside << report.text();
    EXPECT_THAT(report.text(), HasSubstr("dies when the first step is kept"));
    EXPECT_EQ(gateway.charges, 2);
  }
}

// The other side keeps no keys, and nothing finds what it has.
TEST(KitOfSteps, CatchesAStepThatIsRepeatedBlindly) {
  for (const json& outside : {kIdempotent, kQueryable}) {
    Gateway gateway;
    Parts parts = in_two_steps(false);
    parts.reconcile = [](Gateway&, const Call&) { return hapax::Verdict::not_done(); };
    EXPECT_THAT(problems_of(charges(gateway, parts), outside, gateway),
                HasSubstr("WRONG   the process dies in the first step"));
  }
}

// As a worker does: the step may have happened, though the handler throws NotCalled then.
TEST(KitOfSteps, TakesNoCallWithAStepInDoubtForOneThatWasNotMade) {
  Gateway gateway;
  Parts parts;
  parts.call = [](Gateway& to, const Call& call) -> json {
    try {
      return call.step("charge", [&](std::string_view key) {
        if (to.charges > 0) return to.charge(std::string(key));
        to.charge(std::string(key));
        throw std::runtime_error("no answer");
      });
    } catch (const std::runtime_error& error) {
      throw hapax::NotCalled(error.what());
    }
  };
  Harness harness(charges(gateway, parts), declared(kNever));
  const Outcome outcome = harness.deliver(payment());
  EXPECT_EQ(outcome.result, Result::failed) << outcome;
  EXPECT_EQ(outcome.reason, "outcome_unknown");
  EXPECT_EQ(outcome.calls, 1);
}

TEST(KitOfSteps, CatchesAStepThatIsRepeated) {
  Gateway gateway;
  Parts parts;
  parts.call = [](Gateway& to, const Call& call) {
    ++to.charges;  // beside the steps
    call.step("fee", [&](std::string_view key) { return to.charge(std::string(key)); });
    return json(1);
  };
  EXPECT_THAT(problems_of(charges(gateway, parts), kIdempotent, gateway),
              HasSubstr("WRONG   the process dies when the first step is kept"));
}

}  // namespace
}  // namespace kit
