// The steps of a call: one that is kept is not run again.
#include "outside/steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "outside/kept_in_memory.hpp"

namespace hapax::outside {
namespace {

using nlohmann::json;

class StepsOfACall : public testing::Test {
 protected:
  // One call of the operation, in which the handler does `deeds`.
  void call(const std::function<void(const Call&)>& deeds) {
    const std::function<bool()> lease_lasts = [this] { return may_begin; };
    Steps steps({.identity = identity}, "the call's key", keeper, lease_lasts);
    deeds(Call({.key = "the call's key", .steps = &steps}));
  }
  json charge(const Call& call, const std::string& name, const json& answer) {
    return call.step(name, [&](std::string_view key) {
      keys.emplace_back(key);
      return answer;
    });
  }

  KeptInMemory keeper;
  key::Identity identity;
  bool may_begin = true;
  std::vector<std::string> keys;  // that the other side got
};

TEST_F(StepsOfACall, RunOnceAndGiveTheNextCallTheirAnswer) {
  call([&](const Call& one) { EXPECT_EQ(charge(one, "charge", {{"id", 7}}), json({{"id", 7}})); });
  call([&](const Call& one) {
    EXPECT_EQ(charge(one, "charge", "never"), json({{"id", 7}}));
    EXPECT_EQ(charge(one, "notify", "sent"), "sent");
  });
  EXPECT_EQ(keys.size(), 2);
  EXPECT_EQ(keeper.kept.answers, (std::map<std::string, std::string>{{"charge", R"({"id":7})"},
                                                                     {"notify", R"("sent")"}}));
  EXPECT_EQ(keeper.reads, 2);
}

TEST_F(StepsOfACall, HaveAKeyEachThatEveryCallOfTheOperationHandsOn) {
  const auto fails = [](std::string_view) -> json { throw std::runtime_error("lost"); };
  call([&](const Call& one) { EXPECT_THROW(one.step("charge", fails), std::runtime_error); });
  call([&](const Call& one) {
    charge(one, "charge", 1);
    charge(one, "notify", 2);
  });
  call([&](const Call& one) { EXPECT_EQ(keys[0], one.step_key("charge")); });
  EXPECT_EQ(keys[0].size(), 64);
  EXPECT_NE(keys[0], keys[1]);
}

TEST_F(StepsOfACall, AreKnownToReconcile) {
  call([&](const Call& one) { charge(one, "charge", 1); });
  call([&](const Call& one) {
    EXPECT_EQ(one.kept("charge"), json(1));
    EXPECT_EQ(one.kept("notify"), std::nullopt);
    EXPECT_EQ(charge(one, "charge", 2), 1);
    EXPECT_EQ(one.kept("charge"), json(1));
  });
}

TEST_F(StepsOfACall, OfOneNameAreRefusedInOneCall) {
  call([&](const Call& one) {
    charge(one, "charge", 1);
    EXPECT_THROW(charge(one, "charge", 2), std::logic_error);
  });
  call([&](const Call& one) {
    charge(one, "charge", 1);
    EXPECT_THROW(charge(one, "charge", 2), std::logic_error) << "the answer of another step";
  });
  EXPECT_EQ(keys.size(), 1);
}

TEST_F(StepsOfACall, BeginOnlyWhileTheLeaseLasts) {
  call([&](const Call& one) {
    charge(one, "charge", 1);
    may_begin = false;
    EXPECT_THROW(charge(one, "notify", 2), NotCalled);
  });
  EXPECT_EQ(keys.size(), 1);
  call([&](const Call& one) { EXPECT_EQ(charge(one, "charge", 3), 1) << "it is known already"; });
}

// The call is taken for one that was not made only if none of its steps is in doubt.
TEST_F(StepsOfACall, ThatAreInDoubtAreNotTakenForOnesThatWereNotMade) {
  const auto throws = [](auto error) { return [error](std::string_view) -> json { throw error; }; };
  call([&](const Call& one) {
    EXPECT_THROW(one.step("first", throws(NotCalled("no connection"))), NotCalled);
    EXPECT_THROW(one.step("second", throws(Reject("declined"))), Reject);
    may_begin = false;
    EXPECT_THROW(charge(one, "third", 3), NotCalled);
    may_begin = true;
    EXPECT_THROW(one.step("fourth", throws(std::runtime_error("time-out"))), std::runtime_error);
    may_begin = false;
    try {
      charge(one, "fifth", 5);
      FAIL();
    } catch (const NotCalled&) {
      FAIL() << "the fourth may have happened";
    } catch (const std::runtime_error&) {
    }
  });
}

TEST_F(StepsOfACall, OfAnotherPayloadAreNotUsed) {
  identity.fingerprint = {std::string(32, 'a'), "payload"};
  call([&](const Call& one) { charge(one, "charge", 1); });
  identity.fingerprint = {std::string(32, 'b'), "payload"};
  call([&](const Call& one) { EXPECT_THROW(charge(one, "charge", 2), NotCalled); });
  identity.fingerprint = {std::string(32, 'c'), "json-1"};  // cannot be compared
  call([&](const Call& one) { EXPECT_EQ(charge(one, "charge", 2), 1); });
}

TEST_F(StepsOfACall, DoNotBeginIfTheSchemaCannotKeepThem) {
  keeper.kept.can_be_kept = false;
  call([&](const Call& one) { EXPECT_THROW(charge(one, "charge", 1), NotCalled); });
  EXPECT_TRUE(keys.empty());
}

TEST_F(StepsOfACall, AreRefusedByACallThatWasMadeByHand) {
  EXPECT_THROW(Call({.key = "k"}).step("charge", [](std::string_view) { return 1; }),
               std::logic_error);
}

TEST_F(StepsOfACall, EndOnceAnotherWorkerHasTheKey) {
  call([&](const Call& one) {
    charge(one, "charge", 1);
    keeper.is_ours = false;
    EXPECT_THROW(charge(one, "notify", 2), std::runtime_error);
    EXPECT_THROW(charge(one, "third", 3), std::runtime_error);
  });
  EXPECT_EQ(keys.size(), 2);
  call([&](const Call& one) { EXPECT_THROW(charge(one, "fourth", 4), std::runtime_error); });
  EXPECT_EQ(keys.size(), 2);
}

TEST_F(StepsOfACall, NeedANameThatPostgresqlCanKeep) {
  for (const std::string& name :
       {std::string(), std::string("a\0b", 3), std::string("\xff"), std::string(201, 'x')})
    call([&](const Call& one) { EXPECT_THROW(charge(one, name, 1), std::invalid_argument); });
  EXPECT_TRUE(keys.empty());
  call([&](const Call& one) { charge(one, "with \"quotes\" and ü", 1); });
  EXPECT_EQ(keeper.kept.answers.size(), 1);
}

}  // namespace
}  // namespace hapax::outside
